/**
 * Buffers the received bytes of a tunnel stream until they are read. It copies small pieces, because each would keep
 * a whole buffer of the socket in memory.
 */
import { Fifo } from '../collections/fifo.ts'

/** Smaller pieces are copied. */
const SMALL_BYTES = 16 << 10
const FIRST_BLOCK_BYTES = 1 << 10

interface Block {
  readonly bytes: Buffer
  used: number
}

export class Inbox {
  readonly #blocks = new Fifo<Block>()
  #tail: Block | undefined
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  append(piece: Buffer): void {
    this.#bytes += piece.length
    if (piece.length >= SMALL_BYTES) return this.#add({ bytes: piece, used: piece.length })
    const tail = this.#tail
    if (tail === undefined || tail.bytes.length - tail.used < piece.length) return this.#addBlock(piece)
    tail.bytes.set(piece, tail.used)
    tail.used += piece.length
  }

  /** Takes the oldest bytes out. */
  shift(): Buffer | undefined {
    const block = this.#blocks.shift()
    if (block === undefined) return undefined
    if (block === this.#tail) this.#tail = undefined
    this.#bytes -= block.used
    return block.bytes.subarray(0, block.used)
  }

  clear(): void {
    this.#blocks.clear()
    this.#tail = undefined
    this.#bytes = 0
  }

  #addBlock(piece: Buffer): void {
    const next = Math.min(SMALL_BYTES, 2 * (this.#tail?.bytes.length ?? FIRST_BLOCK_BYTES / 2))
    const isAlone = this.#blocks.size === 0
    const bytes = Buffer.allocUnsafeSlow(isAlone ? piece.length : Math.max(piece.length, next))
    bytes.set(piece)
    this.#add({ bytes, used: piece.length })
  }

  #add(block: Block): void {
    this.#blocks.push(block)
    this.#tail = block
  }
}
