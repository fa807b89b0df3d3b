/** Parses and writes frames of SPDY/3.1. `connection.ts` interprets them. */

/** Types of control frames. */
export const SYN_STREAM = 1
export const SYN_REPLY = 2
export const RST_STREAM = 3
export const PING = 6
export const GOAWAY = 7
export const HEADERS = 8

/** The sender will send no more on this stream. */
export const FLAG_FIN = 1

const VERSION = 3
const HEAD_BYTES = 8
/** The length of a frame has 24 bits. */
export const MAX_FRAME_BYTES: number = (1 << 24) - 1
/** Control frames hold headers at most. */
const MAX_CONTROL_BYTES = 256 << 10

export type Frame =
  | { readonly type: 'data'; readonly streamId: number; readonly flags: number; readonly data: Buffer }
  | { readonly type: 'control'; readonly kind: number; readonly flags: number; readonly payload: Buffer }

/** The head of a data frame; its bytes follow as they are. */
export function dataHead(streamId: number, length: number, flags: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32BE(streamId)
  head.writeUInt32BE(((flags << 24) | length) >>> 0, 4)
  return head
}

export function controlFrame(kind: number, flags: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt16BE(0x8000 | VERSION)
  head.writeUInt16BE(kind, 2)
  head.writeUInt32BE(((flags << 24) | payload.length) >>> 0, 4)
  return Buffer.concat([head, payload])
}

/** Numbers of 32 bits, as most payloads are. */
export function words(...values: readonly number[]): Buffer {
  const out = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) out.writeUInt32BE(value, 4 * index)
  return out
}

/** Bytes as they come, frames as they become complete. */
export class FrameParser {
  #waiting: Buffer[] = []
  #size = 0

  /** The frames that are complete now. Throws when the bytes are no SPDY. */
  push(bytes: Buffer): Frame[] {
    this.#waiting.push(bytes)
    this.#size += bytes.length
    const frames: Frame[] = []
    for (let length = this.#frameLength(); length <= this.#size; length = this.#frameLength()) {
      frames.push(parseFrame(this.#take(length)))
    }
    return frames
  }

  /** Of the frame at the front; Infinity when not even its head is here. */
  #frameLength(): number {
    if (this.#size < HEAD_BYTES) return Infinity
    if ((this.#waiting[0] as Buffer).length < HEAD_BYTES) this.#waiting = [Buffer.concat(this.#waiting)]
    const head = this.#waiting[0] as Buffer
    const length = head.readUInt32BE(4) & MAX_FRAME_BYTES
    const isControl = (head[0] as number) >= 0x80
    if (isControl && (head.readUInt16BE(0) & 0x7fff) !== VERSION) throw new Error('The peer does not speak SPDY/3')
    if (isControl && length > MAX_CONTROL_BYTES) throw new Error(`A control frame of ${length} bytes is too large`)
    return HEAD_BYTES + length
  }

  #take(length: number): Buffer {
    const all = this.#waiting.length === 1 ? (this.#waiting[0] as Buffer) : Buffer.concat(this.#waiting)
    this.#waiting = length < all.length ? [all.subarray(length)] : []
    this.#size -= length
    return all.subarray(0, length)
  }
}

function parseFrame(whole: Buffer): Frame {
  const flags = whole[4] as number
  const payload = whole.subarray(HEAD_BYTES)
  if ((whole[0] as number) >= 0x80) return { type: 'control', kind: whole.readUInt16BE(2), flags, payload }
  return { type: 'data', streamId: whole.readUInt32BE(0), flags, data: payload }
}
