import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'

import fc from 'fast-check'

import { deflatePart, joinGzip, storedPart } from './gzip-parts.ts'

describe('gzip of several parts', () => {
  it('unpacks to the concatenated parts with a valid checksum', async () => {
    const bytes = fc.uint8Array({ maxLength: 5000 }).map((array) => Buffer.from(array))
    const part = fc.record({ bytes, stored: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 8 }), async (parts) => {
        const made = parts.map(async (each) => (each.stored ? storedPart(each.bytes) : deflatePart(each.bytes)))
        const whole = Buffer.concat(joinGzip(await Promise.all(made)))
        assert.deepEqual(gunzipSync(whole), Buffer.concat(parts.map((each) => each.bytes)))
      }),
      { numRuns: 60 },
    )
  })

  it('compresses each part so that another file can reuse it', async () => {
    const part = await deflatePart(Buffer.from('configuration '.repeat(50_000)))
    assert.ok(part.blocks.length < part.length / 50)
    const twice = Buffer.concat(joinGzip([part, storedPart(Buffer.from(',')), part]))
    assert.equal(gunzipSync(twice).length, 2 * part.length + 1)
  })

  it("refuses a stored block that exceeds the format's limit", () => {
    assert.throws(() => storedPart(Buffer.alloc(65_536)), /65535 bytes, not 65536/)
  })
})
