import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'

import { encodeFrame, readFrames } from './frames.ts'

async function read(chunks: readonly Buffer[]): Promise<unknown[]> {
  const found: unknown[] = []
  for await (const { head, body } of readFrames(Readable.from(chunks))) found.push([head, body.toString()])
  return found
}

const BOTH = Buffer.concat([encodeFrame({ id: 1, text: 'ä' }, Buffer.from('bytes')), encodeFrame({ id: 2 })])

describe('readFrames() of the connection to a machine', () => {
  it('yields frames across any chunk boundaries', async () => {
    const expected = [
      [{ id: 1, text: 'ä' }, 'bytes'],
      [{ id: 2 }, ''],
    ]
    for (let cut = 0; cut <= BOTH.length; cut++)
      assert.deepEqual(await read([BOTH.subarray(0, cut), BOTH.subarray(cut)]), expected, `cut at ${cut}`)
    assert.deepEqual(await read([...BOTH].map((byte) => Buffer.from([byte]))), expected)
  })

  it('drops an incomplete frame at the end', async () => {
    assert.deepEqual(await read([BOTH.subarray(0, BOTH.length - 1)]), [[{ id: 1, text: 'ä' }, 'bytes']])
  })

  it('throws for an invalid frame', async () => {
    await assert.rejects(read([Buffer.from('SSH-2.0-OpenSSH_9.2')]), /exceeds the limit of calls/)
  })
})
