import assert from 'node:assert/strict'
import { it } from 'node:test'

import { contactFaults } from './runtime-health.ts'

const CASES: readonly (readonly [
  what: string,
  answered: number | undefined,
  listed: number | undefined,
  faults: string[],
])[] = [
  ['is healthy', 599_000, 599_000, []],
  ['misses one check', 575_000, 599_000, []],
  ['has not answered for 30 seconds', 569_000, 599_000, ['container runtime is down']],
  ['never answered', undefined, 599_000, ['container runtime status check may not have completed yet']],
  [
    'hangs',
    100_000,
    400_000,
    ['container runtime is down', 'PLEG is not healthy: pleg was last seen active 3m20s ago; threshold is 3m0s'],
  ],
  ['was never listed', 599_000, undefined, ['PLEG is not healthy: pleg has yet to be successful']],
]

for (const [what, answeredMs, listedMs, faults] of CASES) {
  it(`a container runtime that ${what} has the errors ${JSON.stringify(faults)}`, () => {
    assert.deepEqual(contactFaults({ startedMs: 0, answeredMs, listedMs }, 600_000), faults)
  })
}
