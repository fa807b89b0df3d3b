import assert from 'node:assert/strict'
import { it } from 'node:test'

import { signalNumber } from './signals.ts'

const CASES: readonly (readonly [name: string, number: number])[] = [
  ['SIGABRT', 1],
  ['SIGKILL', 13],
  ['SIGTERM', 23],
  ['SIGUSR1', 29],
  ['SIGRTMIN', 35],
  ['SIGRTMIN+15', 50],
  ['SIGRTMAX-14', 51],
  ['SIGRTMAX', 65],
]

for (const [name, number] of CASES) {
  it(`${name} is ${number} for runtimes`, () => assert.equal(signalNumber(name), number))
}

it('no signal is the choice of the image', () => {
  assert.deepEqual([signalNumber(undefined), signalNumber('SIGNOTHING')], [0, 0])
})
