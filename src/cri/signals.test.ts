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
  it(`signal ${name} has number ${number} in CRI`, () => assert.equal(signalNumber(name), number))
}

it('a container without a known stop signal gets the stop signal of its image', () => {
  assert.deepEqual([signalNumber(undefined), signalNumber('SIGNOTHING')], [0, 0])
})
