/** One stream of a SPDY connection. Each direction ends independently. */
import { Fifo } from '../collections/fifo.ts'
import { MAX_FRAME_BYTES } from './frames.ts'
import type { SpdyHeaders } from './header-block.ts'

/** `refused`: the peer does not want the stream; `timeout`: it did not say; `broken`: the connection was lost. */
export type SpdyErrorCode = 'refused' | 'timeout' | 'broken'

export class SpdyError extends Error {
  override readonly name = 'SpdyError'
  readonly code: SpdyErrorCode

  constructor(code: SpdyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** Where a stream sends: its connection. */
export interface StreamOutput {
  send(id: number, data: Buffer, isLast: boolean): Promise<void>
  reset(id: number): void
}

/** Received bytes that may wait to be read before the connection waits too. */
const MAX_WAITING_BYTES = 256 << 10

/** The overhead of a piece, so that a flood of small ones counts too. */
const OVERHEAD_BYTES = 64

const EMPTY: Buffer = Buffer.alloc(0)

/**
 * The peer's data, read by iterating once. A reset ends it like a regular end, because peers leave that way. A lost
 * connection makes it throw SpdyError `broken`.
 */
export class SpdyStream implements AsyncIterable<Buffer> {
  readonly id: number
  /** Those it was opened with. */
  readonly headers: SpdyHeaders
  readonly #output: StreamOutput
  readonly #taken = Promise.withResolvers<void>()
  readonly #waiting = new Fifo<Buffer>()
  #waitingBytes = 0
  #wake: () => void = nothing
  #room: () => void = nothing
  #isFinished = false
  #isEnded = false
  #isAbandoned = false
  #failure: SpdyError | undefined

  constructor(id: number, headers: SpdyHeaders, output: StreamOutput) {
    this.id = id
    this.headers = headers
    this.#output = output
    // There may be no waiter any more.
    this.#taken.promise.catch(nothing)
  }

  /** Settles when the peer has accepted or refused the stream. */
  get taken(): Promise<void> {
    return this.#taken.promise
  }

  /** The peer will send no more. */
  get isFinished(): boolean {
    return this.#isFinished
  }

  /** We will send no more. */
  get isEnded(): boolean {
    return this.#isEnded
  }

  /** Resolves when there is room for more. Rejects with SpdyError when the stream has ended or the connection is gone. */
  async write(data: Buffer): Promise<void> {
    for (let at = 0; at < data.length; at += MAX_FRAME_BYTES) {
      if (this.#isEnded) throw new SpdyError('broken', 'The stream has ended')
      await this.#output.send(this.id, data.subarray(at, at + MAX_FRAME_BYTES), false)
    }
  }

  /** The last of our bytes was written. Harmless when repeated. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#output.send(this.id, EMPTY, true).catch(nothing)
  }

  /** Ends both directions at once. */
  reset(): void {
    if (this.#isEnded && this.#isFinished) return
    this.#output.reset(this.id)
    this.wasReset()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for (;;) {
        const data = this.#waiting.shift()
        if (data !== undefined) {
          this.#took(data)
          yield data
          continue
        }
        if (this.#failure !== undefined) throw this.#failure
        if (this.#isFinished) return
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      this.#abandon()
    }
  }

  /** For the connection: bytes have come. Resolves when more may come. */
  async received(data: Buffer): Promise<void> {
    if (this.#isFinished || this.#isAbandoned || data.length === 0) return
    this.#waiting.push(data)
    this.#waitingBytes += data.length + OVERHEAD_BYTES
    this.#wake()
    if (this.#waitingBytes <= MAX_WAITING_BYTES) return
    await new Promise<void>((resolve) => {
      this.#room = resolve
    })
  }

  /** For the connection: the peer takes the stream. */
  accepted(): void {
    this.#taken.resolve()
  }

  /** For the connection: the peer does not. */
  refused(code: 'refused' | 'timeout'): void {
    this.#taken.reject(new SpdyError(code, `Stream ${this.id} was not taken by the peer`))
  }

  /** For the connection: the peer has sent its last byte. */
  finished(): void {
    this.#isFinished = true
    this.#wake()
  }

  wasReset(): void {
    this.refused('refused')
    this.#isEnded = true
    this.finished()
    this.#room()
  }

  /** For the connection, which is gone: `isOrderly` when its end was announced. */
  lost(isOrderly: boolean): void {
    if (!isOrderly && !this.#isFinished) this.#failure = new SpdyError('broken', 'The connection was lost')
    this.wasReset()
  }

  #took({ length }: Buffer): void {
    this.#waitingBytes -= length + OVERHEAD_BYTES
    if (this.#waitingBytes <= MAX_WAITING_BYTES / 2) this.#room()
  }

  /** The reader has gone: further data must not stop the other streams. */
  #abandon(): void {
    this.#isAbandoned = true
    this.#waiting.clear()
    this.#room()
  }
}

function nothing(): void {}
