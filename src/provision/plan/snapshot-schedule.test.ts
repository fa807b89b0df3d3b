import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { dueInMs, onceName, outdated, recurringName } from './snapshot-schedule.ts'

const HOUR = 3_600_000
const NOON = Date.parse('2026-01-02T12:00:00.250Z')

describe('scheduled snapshots of etcd', () => {
  it('have names with their time, in characters that file names allow', () => {
    assert.equal(onceName(NOON), 'rke_etcd_snapshot_2026-01-02T12-00-00Z')
    assert.equal(recurringName(NOON), '2026-01-02T12-00-00Z_etcd')
  })

  it('are due at once if there are none, then one interval after the last', () => {
    assert.equal(dueInMs([], 12 * HOUR, NOON), 0)
    assert.equal(dueInMs(['before-the-upgrade'], 12 * HOUR, NOON), 0)
    assert.equal(
      dueInMs([recurringName(NOON - 5 * HOUR), recurringName(NOON - 17 * HOUR)], 12 * HOUR, NOON),
      7 * HOUR - 250,
    )
    assert.equal(dueInMs([recurringName(NOON - 13 * HOUR)], 12 * HOUR, NOON), 0)
    assert.equal(dueInMs([recurringName(NOON + HOUR)], 12 * HOUR, NOON), 0)
  })

  it('are deleted beyond the retention, oldest first, except those with custom names', () => {
    const names = [3, 1, 2, 4].map((hour) => recurringName(NOON + hour * HOUR))
    assert.deepEqual(outdated(['mine', ...names], 2), [recurringName(NOON + HOUR), recurringName(NOON + 2 * HOUR)])
    assert.deepEqual(outdated(['mine', ...names], 6), [])
  })
})
