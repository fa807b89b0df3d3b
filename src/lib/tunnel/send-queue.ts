/**
 * The queue of frames for the tunnel's WebSocket. Control frames go first, then data frames of the streams in
 * rotation, interactive streams before bulk ones. A stream has at most one data frame in the socket.
 */
import { Fifo } from '../collections/fifo.ts'
import type { WebSocketConnection } from '../http/websocket.ts'
import { encodeFrame, type Frame, FRAME_KINDS, type Priority } from './frames.ts'

export interface FrameSource {
  readonly priority: Priority
  readonly hasFrame: boolean
  /** The next data frame; undefined if there is none after all. */
  nextFrame(): Frame | undefined
}

/** Data in the socket delays whatever comes next, so there is only enough to keep the socket busy. */
const MAX_DATA_IN_SOCKET_BYTES = 64 << 10
const MAX_CONTROL_IN_SOCKET_BYTES = 256 << 10
/** A peer that causes control frames and reads none of them. */
const MAX_CONTROL_BYTES = 4 << 20
const OVERHEAD_BYTES = 64
/** One in so many data frames is of a bulk stream, however busy the interactive ones are. */
const BULK_SHARE = 8

export interface SendQueueOptions {
  /** More control frames wait than a peer that reads can cause. */
  readonly overflowed: () => void
}

export class SendQueue {
  readonly #connection: WebSocketConnection
  readonly #options: SendQueueOptions
  readonly #control = new Fifo<Buffer>()
  readonly #interactive = new Fifo<FrameSource>()
  readonly #bulk = new Fifo<FrameSource>()
  /** Sources that wait for their turn or have a frame in the socket. */
  readonly #busy = new Set<FrameSource>()
  /** Of all frames. */
  sentBytes = 0
  #controlBytes = 0
  #inSocketBytes = 0
  #echo: Buffer | undefined
  #turn = 0
  #messages = 0
  #isPumping = false

  constructor(connection: WebSocketConnection, options: SendQueueOptions) {
    this.#connection = connection
    this.#options = options
  }

  control(frame: Frame): void {
    const message = this.#encode(frame)
    this.#control.push(message)
    this.#controlBytes += message.length + OVERHEAD_BYTES
    this.#pump()
    if (this.#controlBytes > MAX_CONTROL_BYTES) this.#options.overflowed()
  }

  /** Answers a probe, and no earlier one that waits for its answer. */
  echo(body: Buffer): void {
    this.#echo = Buffer.from(body)
    this.#pump()
  }

  /** Records that a source has data. */
  ready(source: FrameSource): void {
    if (this.#busy.has(source) || !source.hasFrame) return
    this.#busy.add(source)
    const queue = source.priority === 'bulk' ? this.#bulk : this.#interactive
    queue.push(source)
    this.#pump()
  }

  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    while (this.#sendControl() || this.#sendData()) continue
    this.#isPumping = false
  }

  #sendControl(): boolean {
    if (this.#inSocketBytes >= MAX_CONTROL_IN_SOCKET_BYTES) return false
    const message = this.#control.shift()
    if (message !== undefined) {
      this.#controlBytes -= message.length + OVERHEAD_BYTES
      this.#send(message, () => undefined)
      return true
    }
    if (this.#echo === undefined) return false
    this.#send(this.#encode({ stream: 0, kind: FRAME_KINDS.echo, body: this.#echo }), () => undefined)
    this.#echo = undefined
    return true
  }

  #sendData(): boolean {
    if (this.#inSocketBytes >= MAX_DATA_IN_SOCKET_BYTES) return false
    const source = this.#nextSource()
    if (source === undefined) return false
    const frame = source.nextFrame()
    if (frame === undefined) {
      this.#busy.delete(source)
      return true
    }
    this.#send(this.#encode(frame), () => {
      this.#busy.delete(source)
      this.ready(source)
    })
    return true
  }

  #nextSource(): FrameSource | undefined {
    const isTurnOfBulk = ++this.#turn % BULK_SHARE === 0
    const [first, second] = isTurnOfBulk ? [this.#bulk, this.#interactive] : [this.#interactive, this.#bulk]
    return first.shift() ?? second.shift()
  }

  #send(message: Buffer, flushed: () => void): void {
    const bytes = message.length + OVERHEAD_BYTES
    this.#inSocketBytes += bytes
    this.sentBytes += message.length
    const done = (): void => {
      this.#inSocketBytes -= bytes
      flushed()
      this.#pump()
    }
    // The reader of the connection reports that it is gone.
    this.#connection.send(message, done).catch(() => undefined)
  }

  #encode(frame: Frame): Buffer {
    return encodeFrame(++this.#messages, frame)
  }
}
