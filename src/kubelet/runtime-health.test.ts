import assert from 'node:assert/strict'
import { it } from 'node:test'

import { contactFaults } from './runtime-health.ts'

const CASES: readonly (readonly [
  what: string,
  answered: number | undefined,
  listed: number | undefined,
  said: string[],
])[] = [
  ['is well', 599_000, 599_000, []],
  ['has missed a look', 575_000, 599_000, []],
  ['has not answered for half a minute', 569_000, 599_000, ['container runtime is down']],
  ['never answered', undefined, 599_000, ['container runtime status check may not have completed yet']],
  [
    'hangs',
    100_000,
    400_000,
    ['container runtime is down', 'PLEG is not healthy: pleg was last seen active 3m20s ago; threshold is 3m0s'],
  ],
  ['never told what it holds', 599_000, undefined, ['PLEG is not healthy: pleg has yet to be successful']],
]

for (const [what, answeredMs, listedMs, said] of CASES) {
  it(`a runtime that ${what} means: ${said.length === 0 ? 'nothing' : said.join(', ')}`, () => {
    assert.deepEqual(contactFaults({ startedMs: 0, answeredMs, listedMs }, 600_000), said)
  })
}
