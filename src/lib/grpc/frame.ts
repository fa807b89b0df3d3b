/** Frames gRPC messages on a stream: a compression byte, four bytes of length, and the message. */
import { GrpcError } from './status.ts'

const HEAD_BYTES = 5

/** One message, framed and not compressed. */
export function encodeFrame(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + message.length)
  frame[0] = 0
  frame.writeUInt32BE(message.length, 1)
  frame.set(message, HEAD_BYTES)
  return frame
}

/** Puts messages together from the pieces in which they arrive. */
export class Deframer {
  readonly #limitBytes: number
  /** Pieces that do not make a whole message yet, and their size together. */
  #pieces: Buffer[] = []
  #size = 0
  /** Size that `#size` must reach before it is worth looking again. */
  #wanted = HEAD_BYTES

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /** Whether the last message is incomplete. */
  get isInside(): boolean {
    return this.#size > 0
  }

  /**
   * Takes one more piece and hands out the messages it completes. They share memory with the pieces. Throws `GrpcError`
   * for a message that is compressed or larger than the limit, before holding any of it.
   */
  push(piece: Buffer, onMessage: (message: Buffer) => void): void {
    this.#pieces.push(piece)
    this.#size += piece.length
    if (this.#size < this.#wanted) return
    let rest = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces, this.#size)
    let wanted = this.#frameSize(rest)
    while (rest.length >= wanted) {
      onMessage(rest.subarray(HEAD_BYTES, wanted))
      rest = rest.subarray(wanted)
      wanted = this.#frameSize(rest)
    }
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#size = rest.length
    this.#wanted = wanted
  }

  #frameSize(bytes: Buffer): number {
    if (bytes.length < HEAD_BYTES) return HEAD_BYTES
    if (bytes[0] !== 0) throw new GrpcError('internal', 'Message is compressed although no compression was agreed on')
    const size = bytes.readUInt32BE(1)
    if (size > this.#limitBytes) {
      throw new GrpcError('resourceExhausted', `received message larger than max (${size} vs. ${this.#limitBytes})`)
    }
    return HEAD_BYTES + size
  }
}
