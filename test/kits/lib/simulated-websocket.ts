/** Creates pairs of WebSocket connections in memory for tests, with a delay on a virtual clock. */
import type { Clock } from '#lib/clock.ts'
import { Fifo } from '#lib/collections/fifo.ts'
import { type WebSocketConnection, WebSocketError, type WebSocketMessage } from '#lib/http/websocket.ts'

interface PairOptions {
  readonly clock: Clock
  readonly protocol?: string
  /** Between sending and receiving. Default: 0. */
  readonly delayMs?: number
}

export class SimulatedWebSocket implements WebSocketConnection {
  readonly protocol: string
  readonly hasRoom = true
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  /** Messages that are sent but not received. */
  inFlight = 0
  isCut = false
  readonly #clock: Clock
  readonly #delayMs: number
  readonly #inbox = new Fifo<WebSocketMessage>()
  #peer: SimulatedWebSocket | undefined
  #end: { readonly code: number } | undefined
  #wake: () => void = () => undefined
  #resolveClosed: (end: { code: number; reason: string }) => void = () => undefined

  private constructor({ clock, protocol = '', delayMs = 0 }: PairOptions) {
    this.protocol = protocol
    this.#clock = clock
    this.#delayMs = delayMs
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve
    })
  }

  static pair(options: PairOptions): [SimulatedWebSocket, SimulatedWebSocket] {
    const [one, other] = [new SimulatedWebSocket(options), new SimulatedWebSocket(options)]
    one.#peer = other
    other.#peer = one
    return [one, other]
  }

  async send(message: Buffer | string, flushed?: () => void): Promise<void> {
    if (this.#end !== undefined) throw new WebSocketError('broken', 'The connection is gone')
    const data = Buffer.from(message)
    this.inFlight++
    const isBinary = typeof message !== 'string'
    this.#later(() => {
      this.inFlight--
      if (!this.isCut) this.#peer?.arrive({ data, isBinary })
    })
    if (flushed !== undefined) setImmediate(flushed)
  }

  async close(code = 1000): Promise<void> {
    this.finish(code)
    this.#later(() => this.#peer?.finish(code))
  }

  destroy(): void {
    this.finish(1006)
    this.#later(() => this.#peer?.finish(1006))
  }

  arrive(message: WebSocketMessage): void {
    if (this.#end !== undefined) return
    this.#inbox.push(message)
    this.#wake()
  }

  finish(code: number): void {
    this.#end ??= { code }
    this.#resolveClosed({ code, reason: '' })
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WebSocketMessage, void> {
    for (;;) {
      const message = this.#inbox.shift()
      if (message !== undefined) yield message
      else if (this.#end !== undefined) break
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    }
    if (this.#end?.code === 1006) throw new WebSocketError('broken', 'The connection ended with code 1006')
  }

  #later(task: () => void): void {
    if (this.#delayMs === 0) setImmediate(task)
    else this.#clock.after(this.#delayMs, task)
  }
}
