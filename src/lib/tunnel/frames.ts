/**
 * The frames of a tunnel: many streams in one WebSocket. Each binary message has a head of signed varints (message id,
 * stream id, kind; then a deadline for the kinds 1 and 2) and a body. The kinds 1 to 8 are remotedialer's.
 *
 * Version 2 (subprotocol `hyperkube.tunnel.v2`) uses `data` with at most 32 KiB, and its own kinds instead of the others:
 *
 * | kind | body | meaning |
 * |---|---|---|
 * | 16 open | priority (0 interactive, 1 bulk), `protocol/address` | opens a stream; both sides may send 256 KiB at once |
 * | 17 window | varint | the receiver permits so many more bytes, at most 16 MiB in total |
 * | 18 end | - | the sender sends no more data on this stream; the other direction stays open |
 * | 19 reset | code, text | the stream has failed in both directions |
 * | 20 probe | up to 8 bytes | the other side answers at once; stream 0 |
 * | 21 echo | body of the probe | the answer; only the latest probe needs one |
 * | 22 last | bytes | data and end in one frame |
 *
 * The server numbers its streams 2, 4, 6 and so on, the agent 1, 3, 5. A stream with the protocol `request` carries one
 * request and its response: see `request-head.ts`.
 */

export const FRAME_KINDS = {
  data: 1,
  connect: 2,
  error: 3,
  addClient: 4,
  removeClient: 5,
  pause: 6,
  resume: 7,
  sync: 8,
  open: 16,
  window: 17,
  end: 18,
  reset: 19,
  probe: 20,
  echo: 21,
  last: 22,
} as const

export interface Frame {
  readonly stream: number
  readonly kind: number
  readonly body: Buffer
}

export type Priority = 'interactive' | 'bulk'

export interface Target {
  readonly protocol: string
  readonly address: string
  readonly priority: Priority
}

/** The peer broke the rules of the protocol. */
export class FrameError extends Error {
  override readonly name = 'FrameError'
}

export const EMPTY_BODY: Buffer = Buffer.alloc(0)
/** Largest body of a data frame that we send, and in version 2 of one that we accept. */
export const MAX_DATA_BYTES: number = 32 << 10
/** Of addresses and of the texts of errors. */
const MAX_TEXT_BYTES = 1024
/** Older peers read no more of an error. */
const MAX_ERROR_BYTES = 100
const MAX_SYNC_BYTES = 1 << 20
const MAX_VARINT_BYTES = 10

export function encodeFrame(id: number, { stream, kind, body }: Frame): Buffer {
  const isTimed = hasDeadline(kind)
  const headBytes = varintBytes(id) + varintBytes(stream) + varintBytes(kind) + (isTimed ? 1 : 0)
  const message = Buffer.allocUnsafe(headBytes + body.length)
  let at = writeVarint(message, 0, id)
  at = writeVarint(message, at, stream)
  at = writeVarint(message, at, kind)
  // In milliseconds; 0 means none.
  if (isTimed) message[at] = 0
  message.set(body, headBytes)
  return message
}

/** Throws FrameError. The body is a part of `message`. */
export function decodeFrame(message: Buffer): Frame {
  const reader = new VarintReader(message)
  reader.skip()
  const stream = reader.next()
  const kind = reader.next()
  if (hasDeadline(kind)) reader.skip()
  return { stream, kind, body: message.subarray(reader.at) }
}

function hasDeadline(kind: number): boolean {
  return kind === FRAME_KINDS.data || kind === FRAME_KINDS.connect
}

/** The body of `connect`. */
export function encodeAddress({ protocol, address }: Omit<Target, 'priority'>): Buffer {
  return Buffer.from(`${protocol}/${address}`)
}

/** Throws FrameError. */
export function decodeAddress(body: Buffer): Target {
  if (body.length > MAX_TEXT_BYTES) throw new FrameError(`An address has ${body.length} bytes`)
  const text = body.toString()
  const at = text.indexOf('/')
  if (at < 0) throw new FrameError('An address has no protocol')
  return { protocol: text.slice(0, at), address: text.slice(at + 1), priority: 'interactive' }
}

/** The body of `open`. */
export function encodeOpen(target: Target): Buffer {
  return Buffer.concat([Buffer.from([target.priority === 'bulk' ? 1 : 0]), encodeAddress(target)])
}

/** Throws FrameError. */
export function decodeOpen(body: Buffer): Target {
  const [priority = 2] = body
  if (priority > 1) throw new FrameError('A stream has an unknown priority')
  return { ...decodeAddress(body.subarray(1)), priority: priority === 1 ? 'bulk' : 'interactive' }
}

/** The body of `error`. */
export function encodeError(text: string): Buffer {
  return Buffer.from(text).subarray(0, MAX_ERROR_BYTES)
}

export function decodeError(body: Buffer): string {
  return body.toString('utf8', 0, MAX_TEXT_BYTES)
}

/** The body of `sync`: the ids of all streams that are open, eight bytes each. */
export function encodeSync(streams: Iterable<number>): Buffer {
  const ids = [...streams]
  const body = Buffer.allocUnsafe(ids.length * 8)
  for (const [at, id] of ids.entries()) body.writeBigInt64LE(BigInt(id), at * 8)
  return body
}

/** Throws FrameError. */
export function decodeSync(body: Buffer): Set<number> {
  if (body.length % 8 > 0 || body.length > MAX_SYNC_BYTES)
    throw new FrameError(`${body.length} bytes are no list of ids`)
  return new Set(Array.from({ length: body.length / 8 }, (_, at) => Number(body.readBigInt64LE(at * 8))))
}

/** The body of `window`. */
export function encodeWindow(bytes: number): Buffer {
  const body = Buffer.allocUnsafe(varintBytes(bytes))
  writeVarint(body, 0, bytes)
  return body
}

/** Throws FrameError. */
export function decodeWindow(body: Buffer): number {
  return new VarintReader(body).next()
}

export const RESET_CODES = { cancelled: 0, refused: 1, failed: 2, window: 3, overflow: 4 } as const

export interface Reset {
  readonly code: number
  readonly text: string
}

export function encodeReset({ code, text }: Reset): Buffer {
  return Buffer.concat([Buffer.from([code]), Buffer.from(text).subarray(0, MAX_TEXT_BYTES)])
}

/** Throws FrameError. */
export function decodeReset(body: Buffer): Reset {
  const [code] = body
  if (code === undefined || body.length > MAX_TEXT_BYTES + 1) throw new FrameError('A reset is malformed')
  return { code, text: body.toString('utf8', 1) }
}

/** Reads numbers that are not negative. Throws FrameError. */
class VarintReader {
  at = 0
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  next(): number {
    let value = 0
    let factor = 1
    const end = this.#end()
    for (; this.at < end; this.at++, factor *= 128) value += ((this.#bytes[this.at] ?? 0) & 0x7f) * factor
    // Zigzag: odd numbers are negative.
    if (value % 2 !== 0 || value / 2 > Number.MAX_SAFE_INTEGER) throw new FrameError('A number is out of range')
    return value / 2
  }

  /** Message ids of other peers have 63 bits, and nothing depends on them. */
  skip(): void {
    this.at = this.#end()
  }

  #end(): number {
    for (let end = this.at; end < this.at + MAX_VARINT_BYTES; end++) {
      const byte = this.#bytes[end]
      if (byte === undefined) throw new FrameError('A message ends within a number')
      if (byte < 0x80) return end + 1
    }
    throw new FrameError('A number is too long')
  }
}

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value * 2; rest >= 0x80; rest = Math.floor(rest / 128)) bytes++
  return bytes
}

/**
 * Returns where the next byte goes. Zigzag encoding keeps small numbers short regardless of sign; the numbers here are
 * never negative.
 */
function writeVarint(target: Buffer, start: number, value: number): number {
  let at = start
  let rest = value * 2
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) target[at++] = (rest % 128) | 0x80
  target[at++] = rest
  return at
}
