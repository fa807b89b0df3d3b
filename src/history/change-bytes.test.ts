import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { decodeChanges, encodeChanges } from './change-bytes.ts'
import { decodeTimes, encodeTimes } from './packed-times.ts'
import type { RecordedChange } from './recorded-change.ts'

const put: RecordedChange = {
  type: 'put',
  key: '/registry/configmaps/default/ä',
  createRevision: 5,
  modRevision: 2 ** 50,
  value: Buffer.from('{"kind":"ConfigMap"}'),
  note: '{"user":"jané"}',
}

describe('the bytes of changes', () => {
  it('hold every field', () => {
    const changes: RecordedChange[] = [
      put,
      { ...put, type: 'delete', value: Buffer.alloc(0), note: '' },
      { ...put, type: 'state', modRevision: 127, createRevision: 128, value: Buffer.alloc(300, 1) },
    ]
    assert.deepEqual([...decodeChanges(encodeChanges(changes))], changes)
  })

  it('are refused when they end too early', () => {
    const bytes = encodeChanges([put])
    for (let length = 1; length < bytes.length; length++)
      assert.throws(() => [...decodeChanges(bytes.subarray(0, length))], RangeError)
  })

  it('are refused with an unknown type', () => {
    assert.throws(() => [...decodeChanges(Buffer.from([7]))], /there is no change at byte 0/)
  })
})

describe('the bytes of times', () => {
  it('hold revisions and milliseconds', () => {
    const times = [
      [3, 1_800_000_000_000],
      [3000, 1_800_000_001_234],
    ] as const
    assert.deepEqual(decodeTimes(encodeTimes(times)), times)
  })
})
