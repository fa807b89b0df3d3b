/**
 * The frames of a tunnel: many connections in one. Each message has a head of signed varints (message id, connection
 * id, type, optional deadline) and a body. The format is remotedialer's.
 */

export const FRAME_KINDS = {
  data: 1,
  connect: 2,
  error: 3,
  addClient: 4,
  removeClient: 5,
  pause: 6,
  resume: 7,
} as const

export interface Frame {
  readonly connection: number
  readonly kind: number
  readonly body: Buffer
}

export class FrameError extends Error {
  override readonly name = 'FrameError'
}

export function encodeFrame(id: number, { connection, kind, body }: Frame): Buffer {
  const head = [...varint(id), ...varint(connection), ...varint(kind)]
  // In milliseconds; 0 means none.
  if (hasDeadline(kind)) head.push(...varint(0))
  return Buffer.concat([Buffer.from(head), body])
}

/** Throws FrameError. */
export function decodeFrame(message: Buffer): Frame {
  let at = 0
  const next = (): bigint => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = message[at++]
      if (byte === undefined) throw new FrameError('a message of the tunnel ends within its head')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return (value >> 1n) ^ -(value & 1n)
    }
    throw new FrameError('a number in a message of the tunnel is too long')
  }
  next()
  const [connection, kind] = [Number(next()), Number(next())]
  if (!Number.isSafeInteger(connection)) throw new FrameError('a connection of the tunnel has too large a number')
  if (hasDeadline(kind)) next()
  return { connection, kind, body: message.subarray(at) }
}

function hasDeadline(kind: number): boolean {
  return kind === FRAME_KINDS.data || kind === FRAME_KINDS.connect
}

/** Zigzag encoding keeps small numbers short regardless of sign. The numbers here are never negative. */
function varint(value: number): number[] {
  const bytes: number[] = []
  let rest = BigInt(value) << 1n
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return bytes
}
