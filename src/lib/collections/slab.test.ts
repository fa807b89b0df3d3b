import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createSlab } from './slab.ts'

describe('a slab', () => {
  it('allocates separate bytes from a shared buffer', () => {
    const take = createSlab()
    const taken = Array.from({ length: 1000 }, (_, index) => take(200).fill(index % 251))
    assert.ok(taken.every((bytes, index) => bytes.length === 200 && bytes.every((byte) => byte === index % 251)))
    assert.equal(new Set(taken.map(({ buffer }) => buffer)).size, Math.ceil(1000 / Math.floor(65536 / 200)))
  })

  it('allocates a separate buffer for large requests, and none for empty ones', () => {
    const take = createSlab()
    const [small, large, other] = [take(10), take(20_000), take(10)]
    assert.equal(large.buffer.byteLength, 20_000)
    assert.equal(small.buffer, other.buffer)
    assert.equal(take(0).length, 0)
  })
})
