import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { requestInfoOf } from '#auth/request-info.ts'

import { isMomentsPath, momentRangeOf } from './moments.ts'

const REACH = { first: 40, last: 90, bytes: 1000, gaps: [] }
const TIMES = {
  timeOf: (revision: number) => (revision < 3 ? undefined : Date.UTC(2026, 0, 1) + revision * 1000),
}

describe('MomentRange', () => {
  it('reaches from the oldest revision to the newest', () => {
    assert.deepEqual(momentRangeOf(TIMES, REACH), {
      kind: 'MomentRange',
      apiVersion: 'hyperkube.io/v1',
      oldest: { resourceVersion: '40', time: '2026-01-01T00:00:40Z' },
      newest: { resourceVersion: '90', time: '2026-01-01T00:01:30Z' },
      bytes: 1000,
      gaps: [],
    })
  })

  it('of a store that was never compacted begins at the first revision, whose time may be unknown', () => {
    assert.deepEqual(momentRangeOf(TIMES, { ...REACH, first: 0 }).oldest, { resourceVersion: '1' })
  })

  it('names its gaps', () => {
    const gap = { after: 50, until: 57, afterMs: 1, untilMs: 2, reason: 'the disk was full' }
    assert.deepEqual(momentRangeOf(TIMES, { ...REACH, gaps: [gap] }).gaps, [
      {
        from: { resourceVersion: '50', time: '2026-01-01T00:00:50Z' },
        to: { resourceVersion: '57', time: '2026-01-01T00:00:57Z' },
        message: 'the disk was full',
      },
    ])
  })

  it('has one path', () => {
    const isPath = (path: string): boolean => isMomentsPath(requestInfoOf('GET', path, undefined))
    assert.ok(isPath('/apis/hyperkube.io/v1/moments'))
    const others = ['v1/moments/one', 'v2/moments', 'v1/pods', 'v1', '']
    for (const path of others) assert.ok(!isPath(`/apis/hyperkube.io/${path}`), path)
    assert.ok(!isPath('/past/-2m/apis/hyperkube.io/v1/moments'))
  })
})
