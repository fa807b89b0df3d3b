/** Tests the list of snapshots. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { groupSnapshots } from './snapshots.ts'

describe('groupSnapshots()', () => {
  it('shows each name once, with its machines and problems, the newest first', () => {
    const found = groupSnapshots([
      { machine: 'a', name: 'before-upgrade', sizeBytes: 5, revision: 7 },
      { machine: 'a', name: '2026-01-01T10-00-00Z_etcd', problem: 'it is truncated' },
      { machine: 'b', name: '2026-01-01T10-00-00Z_etcd', sizeBytes: 9, revision: 8 },
      { machine: '', name: '2026-01-01T10-00-00Z_etcd', isCopy: true },
      { machine: 'a', name: 'rke_etcd_snapshot_2026-01-02T10-00-00Z', sizeBytes: 1 },
    ])
    assert.deepEqual(
      found.map(({ name, places, sizeBytes, problems }) => [name, places, sizeBytes, problems]),
      [
        ['rke_etcd_snapshot_2026-01-02T10-00-00Z', ['a'], 1, []],
        ['2026-01-01T10-00-00Z_etcd', ['a', 'b', 'bucket'], 9, ['a: it is truncated']],
        ['before-upgrade', ['a'], 5, []],
      ],
    )
    const broken = groupSnapshots([{ machine: 'a', name: 'x', problem: 'no' }])
    assert.deepEqual([found[1]?.isComplete, broken[0]?.isComplete], [true, false])
    assert.equal(found[1]?.takenAtMs, Date.UTC(2026, 0, 1, 10))
    assert.equal(found[2]?.takenAtMs, undefined)
  })
})
