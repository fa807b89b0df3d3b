import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { requestInfoOf } from '#auth/request-info.ts'

import { isMomentsPath, momentRangeOf, type StoreFigures } from './moments.ts'

const STORE: StoreFigures = {
  revision: 90,
  compactedRevision: 40,
  sizeBytes: 1000,
  timeOf: (revision) => (revision < 40 ? undefined : Date.UTC(2026, 0, 1) + revision * 1000),
}

describe('MomentRange', () => {
  it('of a store begins at its compaction', () => {
    assert.deepEqual(momentRangeOf(STORE), {
      kind: 'MomentRange',
      apiVersion: 'hyperkube.io/v1',
      oldest: { resourceVersion: '40', time: '2026-01-01T00:00:40Z' },
      newest: { resourceVersion: '90', time: '2026-01-01T00:01:30Z' },
      bytes: 1000,
      gaps: [],
    })
  })

  it('of a store that was never compacted begins at the first revision, whose time may be unknown', () => {
    assert.deepEqual(momentRangeOf({ ...STORE, compactedRevision: 0 }).oldest, { resourceVersion: '1' })
  })

  it('reaches as far as the history beside the store', () => {
    const oldest = { resourceVersion: '3', time: '2025-12-01T00:00:00Z' }
    const gap = { from: oldest, to: { resourceVersion: '7' }, message: 'the disk was full' }
    const range = momentRangeOf(STORE, { oldest, bytes: 500, gaps: [gap] })
    assert.deepEqual([range.oldest, range.bytes, range.gaps], [oldest, 1500, [gap]])
  })

  it('has one path', () => {
    const isPath = (path: string): boolean => isMomentsPath(requestInfoOf('GET', path, undefined))
    assert.ok(isPath('/apis/hyperkube.io/v1/moments'))
    const others = ['v1/moments/one', 'v2/moments', 'v1/pods', 'v1', '']
    for (const path of others) assert.ok(!isPath(`/apis/hyperkube.io/${path}`), path)
    assert.ok(!isPath('/past/-2m/apis/hyperkube.io/v1/moments'))
  })
})
