/**
 * Queues the received messages of a gRPC stream for their reader. The inbox pauses the stream while too many messages
 * wait.
 */
import { Fifo } from '../collections/fifo.ts'
import type { GrpcError } from './status.ts'

/** The source of the messages. */
interface Source {
  pause(): void
  resume(): void
}

/** Unread messages beyond these bytes stop the stream until half of them are read. */
const MAX_QUEUED_BYTES = 256 << 10

/** The overhead of a message, so that a flood of empty ones counts too. */
const OVERHEAD_BYTES = 64

/** Can be read once, by one reader at a time. */
export class Inbox<T> implements AsyncIterableIterator<T> {
  readonly #decode: (bytes: Buffer) => T
  readonly #onLeave: () => void
  readonly #queue = new Fifo<Buffer>()
  #queuedBytes = 0
  #source: Source | undefined
  #isPaused = false
  /** The reader has seen the end, or has left. */
  #isDone = false
  #end: { readonly error: GrpcError | undefined } | undefined
  #reader: ((wake: void) => void) | undefined

  constructor(decode: (bytes: Buffer) => T, onLeave: () => void) {
    this.#decode = decode
    this.#onLeave = onLeave
  }

  /** How the call ended, when it has. */
  get end(): { readonly error: GrpcError | undefined } | undefined {
    return this.#end
  }

  attach(source: Source): void {
    this.#source = source
  }

  put(message: Buffer): void {
    this.#queue.push(message)
    this.#queuedBytes += message.length + OVERHEAD_BYTES
    if (this.#queuedBytes > MAX_QUEUED_BYTES && !this.#isPaused) {
      this.#isPaused = true
      this.#source?.pause()
    }
    this.#wake()
  }

  finish(error: GrpcError | undefined): void {
    this.#end ??= { error }
    this.#wake()
  }

  async next(): Promise<IteratorResult<T>> {
    for (;;) {
      const message = this.#queue.shift()
      if (message !== undefined) {
        this.#taken(message)
        return { done: false, value: this.#decodeOrLeave(message) }
      }
      if (this.#isDone || this.#end !== undefined) return this.#finished()
      await new Promise<void>((resolve) => {
        this.#reader = resolve
      })
    }
  }

  return(): Promise<IteratorResult<T>> {
    this.#leave()
    return Promise.resolve({ done: true, value: undefined })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #leave(): void {
    this.#isDone = true
    this.#queue.clear()
    this.#onLeave()
  }

  /** A loop over this calls `return` when its body fails, but not when `next` does. */
  #decodeOrLeave(message: Buffer): T {
    try {
      return this.#decode(message)
    } catch (error) {
      this.#leave()
      throw error
    }
  }

  #finished(): IteratorResult<T> {
    const error = this.#isDone ? undefined : this.#end?.error
    this.#isDone = true
    if (error !== undefined) throw error
    return { done: true, value: undefined }
  }

  #taken(message: Buffer): void {
    this.#queuedBytes -= message.length + OVERHEAD_BYTES
    if (!this.#isPaused || this.#queuedBytes > MAX_QUEUED_BYTES / 2) return
    this.#isPaused = false
    this.#source?.resume()
  }

  #wake(): void {
    this.#reader?.()
    this.#reader = undefined
  }
}
