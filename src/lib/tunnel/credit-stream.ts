/**
 * A tunnel stream of protocol version 2 with a flow-control window, which grows while the reader keeps up with the
 * sender. Both directions end independently.
 */
import { decodeReset, decodeWindow, encodeReset, encodeWindow, type Frame, FRAME_KINDS, FrameError } from './frames.ts'
import { MAX_DATA_BYTES, RESET_CODES } from './frames.ts'
import { type StreamOptions, TunnelStream } from './stream.ts'
import { TunnelError, type TunnelErrorCode } from './tunnel-error.ts'

export const FIRST_WINDOW_BYTES: number = 256 << 10
export const MAX_WINDOW_BYTES: number = 16 << 20

export class CreditStream extends TunnelStream {
  /** How many bytes the other side permits. */
  #credit = FIRST_WINDOW_BYTES
  /** How many bytes may be on their way to our reader. */
  #window = FIRST_WINDOW_BYTES
  /** How many bytes the other side may still send. */
  #permitted = FIRST_WINDOW_BYTES
  /** How many bytes our reader has taken since we permitted some. */
  #takenBytes = 0
  #permittedAtMs: number
  #hasEnded = false
  #isReset = false

  constructor(options: StreamOptions) {
    super(options, true)
    this.#permittedAtMs = this.host.clock.elapsed()
    // The first window is a rule of the protocol, so it cannot be refused.
    this.host.release(-FIRST_WINDOW_BYTES)
  }

  override handle({ kind, body }: Frame): void {
    if (kind === FRAME_KINDS.data) this.#receiveData(body)
    else if (kind === FRAME_KINDS.last) this.#receiveLast(body)
    else if (kind === FRAME_KINDS.window) this.#addCredit(decodeWindow(body))
    else if (kind === FRAME_KINDS.end) this.#remoteEnded()
    else if (kind === FRAME_KINDS.reset) this.#remoteReset(body)
    else throw new FrameError(`A frame of kind ${kind} is not part of version 2`)
  }

  protected override get allowance(): number {
    return this.#credit
  }

  protected override sent(bytes: number): void {
    this.#credit -= bytes
  }

  protected override kindOfData(isLast: boolean): number {
    if (!isLast) return FRAME_KINDS.data
    this.#hasEnded = true
    return FRAME_KINDS.last
  }

  protected override taken(bytes: number): void {
    this.#takenBytes += bytes
    if (this.#takenBytes * 2 < this.#window || this.hasRemoteEnded || this.destroyed) return
    const now = this.host.clock.elapsed()
    const bytesMore = this.#takenBytes + this.#grow(now - this.#permittedAtMs)
    this.#permittedAtMs = now
    this.#takenBytes = 0
    this.#permitted += bytesMore
    this.host.control(this.id, FRAME_KINDS.window, encodeWindow(bytesMore))
  }

  override _final(done: () => void): void {
    if (!this.#hasEnded) this.host.control(this.id, FRAME_KINDS.end)
    this.#hasEnded = true
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.host.release(this.#window)
    super._destroy(error, done)
  }

  protected override farewell(error: Error | null): void {
    if (this.#isReset || (this.#hasEnded && this.hasRemoteEnded)) return
    this.#isReset = true
    const code = error === null ? RESET_CODES.cancelled : codeOf(error)
    this.host.control(this.id, FRAME_KINDS.reset, encodeReset({ code, text: error?.message ?? '' }))
  }

  #receiveData(body: Buffer): void {
    if (body.length > MAX_DATA_BYTES) throw new FrameError(`A data frame has ${body.length} bytes`)
    if (this.hasRemoteEnded) throw new FrameError('Data after the end of a stream')
    if (body.length > this.#permitted) return void this.destroy(exceeded(body.length - this.#permitted))
    this.#permitted -= body.length
    this.receive(body)
  }

  #receiveLast(body: Buffer): void {
    this.#receiveData(body)
    if (!this.destroyed) this.#remoteEnded()
  }

  #addCredit(bytes: number): void {
    this.#credit += bytes
    if (this.#credit > MAX_WINDOW_BYTES) throw new FrameError(`A window has ${this.#credit} bytes`)
    this.host.ready(this)
  }

  #remoteEnded(): void {
    if (this.hasRemoteEnded) throw new FrameError('A second end of a stream')
    this.endReading()
  }

  #remoteReset(body: Buffer): void {
    const { code, text } = decodeReset(body)
    this.#isReset = true
    const kind = code === RESET_CODES.refused ? 'refused' : 'reset'
    this.destroy(new TunnelError(kind, text === '' ? 'The other side cancelled the stream' : text))
  }

  /**
   * Doubles a window that limits the sender: its reader took half of it in less than a delay. A larger one would only
   * make queues longer.
   */
  #grow(tookMs: number): number {
    const more = Math.min(this.#window, MAX_WINDOW_BYTES - this.#window)
    if (more === 0 || tookMs >= this.host.delayMs || !this.host.reserve(more)) return 0
    this.#window += more
    return more
  }
}

function exceeded(bytes: number): TunnelError {
  return new TunnelError('window', `The peer sent ${bytes} bytes more than permitted`)
}

function codeOf(error: Error): number {
  const codes: Partial<Record<TunnelErrorCode, number>> = {
    refused: RESET_CODES.refused,
    window: RESET_CODES.window,
    overflow: RESET_CODES.overflow,
  }
  return (error instanceof TunnelError ? codes[error.code] : undefined) ?? RESET_CODES.failed
}
