/**
 * A tunnel stream of protocol version 1: a slow reader sends `pause`, and data in flight still arrives. The text
 * `EOF` closes both directions, so a dialed stream sends it only after its peer has closed.
 */
import { decodeError, encodeError, type Frame, FRAME_KINDS } from './frames.ts'
import { type StreamOptions, TunnelStream } from './stream.ts'
import { TunnelError } from './tunnel-error.ts'

const PAUSE_BYTES = 256 << 10
const RESUME_BYTES = 64 << 10
const EOF = 'EOF'

export class PausingStream extends TunnelStream {
  /** The other side has our pause, and no resume. */
  #isPeerPaused = false
  #isPaused = false
  /** One of the sides has closed the stream, so the other side expects nothing more. */
  #isClosed = false

  constructor(options: StreamOptions) {
    super(options, false)
  }

  override handle({ kind, body }: Frame): void {
    if (kind === FRAME_KINDS.data) this.receive(body)
    if (kind === FRAME_KINDS.pause) this.#isPaused = true
    if (kind === FRAME_KINDS.resume) {
      this.#isPaused = false
      this.host.ready(this)
    }
    if (kind === FRAME_KINDS.error) this.#closed(decodeError(body))
  }

  protected override get allowance(): number {
    return this.#isPaused ? 0 : Infinity
  }

  protected override sent(): void {
    // There is no credit to count.
  }

  protected override kindOfData(): number {
    return FRAME_KINDS.data
  }

  protected override receive(body: Buffer): void {
    super.receive(body)
    if (this.#isPeerPaused || this.destroyed || this.bufferedBytes <= PAUSE_BYTES) return
    this.#isPeerPaused = true
    this.host.control(this.id, FRAME_KINDS.pause)
  }

  protected override taken(): void {
    if (!this.#isPeerPaused || this.bufferedBytes > RESUME_BYTES) return
    this.#isPeerPaused = false
    this.host.control(this.id, FRAME_KINDS.resume)
  }

  protected override writing(): void {
    if (this.#isClosed) this.dropOutgoing()
  }

  /**
   * The peer of a dialed stream still has an answer to send, and would drop it. The server of an accepted stream has
   * answered, and the peer waits for the end.
   */
  override _final(done: () => void): void {
    if (!this.isDialed) {
      this.farewell(null)
      this.endReading()
    }
    done()
  }

  protected override farewell(error: Error | null): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.host.control(this.id, FRAME_KINDS.error, encodeError(error?.message ?? EOF))
  }

  #closed(reason: string): void {
    this.#isClosed = true
    if (reason !== EOF) return void this.destroy(new TunnelError('reset', reason))
    this.dropOutgoing()
    this.endReading()
  }
}
