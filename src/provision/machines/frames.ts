/**
 * Encodes the calls of `hyperkube build` to a machine: two lengths of four bytes, a JSON text, and binary content. An
 * oversized frame ends the connection, because the peer does not speak this protocol.
 */
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'

export interface Frame {
  readonly head: unknown
  readonly body: Buffer
}

const LENGTHS = 8
/** Parts of an upload are smaller. */
const MAX_BYTES = 64 * 1024 * 1024

export function encodeFrame(head: unknown, body: Uint8Array = Buffer.alloc(0)): Buffer {
  const text = Buffer.from(JSON.stringify(head))
  const lengths = Buffer.alloc(LENGTHS)
  lengths.writeUInt32BE(text.length, 0)
  lengths.writeUInt32BE(body.length, 4)
  return Buffer.concat([lengths, text, body])
}

/** Yields frames until the stream ends. Throws RangeError for an invalid frame; drops an incomplete one at the end. */
export async function* readFrames(stream: Readable): AsyncGenerator<Frame> {
  let buffered: Buffer[] = []
  let size = 0
  let wanted = LENGTHS
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    buffered.push(chunk)
    size += chunk.length
    if (size < wanted) continue
    let bytes = Buffer.concat(buffered)
    for (;;) {
      const length = frameLength(bytes)
      wanted = length ?? LENGTHS
      if (length === undefined || bytes.length < length) break
      yield decode(bytes.subarray(0, length))
      bytes = bytes.subarray(length)
    }
    buffered = [bytes]
    size = bytes.length
  }
}

function frameLength(bytes: Buffer): number | undefined {
  if (bytes.length < LENGTHS) return undefined
  const length = LENGTHS + bytes.readUInt32BE(0) + bytes.readUInt32BE(4)
  if (length > MAX_BYTES) throw new RangeError(`A frame of ${length} bytes exceeds the limit of calls`)
  return length
}

function decode(bytes: Buffer): Frame {
  const text = bytes.readUInt32BE(0)
  const head = JSON.parse(bytes.toString('utf8', LENGTHS, LENGTHS + text)) as unknown
  return { head, body: Buffer.from(bytes.subarray(LENGTHS + text)) }
}

/** Waits while the other side does not read. Never rejects: the reader notices a lost connection. */
export async function sendFrame(stream: Writable, frame: Buffer): Promise<void> {
  if (stream.destroyed || stream.write(frame)) return
  await Promise.race([once(stream, 'drain'), once(stream, 'close')]).catch(() => undefined)
}
