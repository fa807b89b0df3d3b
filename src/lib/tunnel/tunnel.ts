/**
 * A tunnel: many streams in both directions over one WebSocket, by the protocol in `frames.ts`. A slow reader delays
 * only its own stream.
 */
import type { Duplex } from 'node:stream'

import { type Clock, every, type Timer } from '../clock.ts'
import type { WebSocketConnection } from '../http/websocket.ts'
import { CreditStream } from './credit-stream.ts'
import {
  decodeAddress,
  decodeFrame,
  decodeOpen,
  decodeSync,
  EMPTY_BODY,
  encodeAddress,
  encodeError,
  encodeOpen,
  encodeReset,
  encodeSync,
  type Frame,
  FRAME_KINDS,
  FrameError,
  type Priority,
  RESET_CODES,
} from './frames.ts'
import { PausingStream } from './pausing-stream.ts'
import { RoundTrip } from './round-trip.ts'
import { SendQueue } from './send-queue.ts'
import type { StreamHost, TunnelStream } from './stream.ts'
import { TunnelError } from './tunnel-error.ts'

/** The WebSocket subprotocol of version 2. Without it both sides use version 1. */
export const TUNNEL_PROTOCOL = 'hyperkube.tunnel.v2'

export type Accept = (protocol: string, address: string) => ((stream: Duplex) => void) | undefined

export interface TunnelOptions {
  readonly clock: Clock
  /** Which of the two numberings of streams is ours; the sides differ. Default: `server`. */
  readonly side?: 'server' | 'agent'
  /** How a stream that the other side opens is served. Undefined: refused. Default: none are served. */
  readonly accept?: Accept
  /** Limit of bytes buffered for all streams. Default 64 MiB. */
  readonly maxBufferedBytes?: number
}

const MAX_BUFFERED_BYTES = 64 << 20
const SYNC_EVERY_MS = 60_000
/** An open stream takes about this much, however little it carries. */
const STREAM_BYTES = 4 << 10

export class Tunnel {
  readonly protocolVersion: 1 | 2
  readonly #connection: WebSocketConnection
  readonly #clock: Clock
  readonly #side: 'server' | 'agent'
  readonly #accept: Accept
  readonly #maxBufferedBytes: number
  readonly #queue: SendQueue
  readonly #roundTrip: RoundTrip
  readonly #host: StreamHost
  readonly #streams = new Map<number, TunnelStream>()
  /** Dialed streams that the other side has not mentioned yet. */
  readonly #unknownToPeer = new Set<number>()
  readonly #missedOnce = new Set<number>()
  #nextDialed: number
  #lastAccepted = 0
  #receivedBytes = 0
  #bufferedBytes = 0
  #windowBytes = 0
  #end: Error | undefined
  #isClosing = false
  #receivedAtMs: number

  constructor(connection: WebSocketConnection, options: TunnelOptions) {
    const { clock, side = 'server', accept = () => undefined, maxBufferedBytes = MAX_BUFFERED_BYTES } = options
    this.protocolVersion = connection.protocol === TUNNEL_PROTOCOL ? 2 : 1
    this.#connection = connection
    this.#clock = clock
    this.#side = side
    this.#accept = accept
    this.#maxBufferedBytes = maxBufferedBytes
    this.#nextDialed = side === 'server' ? 2 : 1
    this.#receivedAtMs = clock.elapsed()
    const overflowed = (): void => this.#break(new TunnelError('overflow', 'The peer reads no control frames'))
    this.#queue = new SendQueue(connection, { overflowed })
    this.#roundTrip = new RoundTrip(clock, (body) => this.#control(0, FRAME_KINDS.probe, body))
    this.#host = this.#createHost()
  }

  get streams(): number {
    return this.#streams.size
  }

  /** Of all frames. */
  get receivedBytes(): number {
    return this.#receivedBytes
  }

  get sentBytes(): number {
    return this.#queue.sentBytes
  }

  /** For how long the other side has sent nothing although a probe waits for its answer. Sends a probe if none does. */
  silentMs(): number {
    if (this.protocolVersion === 1) return 0
    this.#roundTrip.refresh()
    return Math.min(this.#roundTrip.waitingMs, this.#clock.elapsed() - this.#receivedAtMs)
  }

  /** Reads until the other side disconnects; rejects with the error that broke the connection. */
  async serve(): Promise<void> {
    const sync = this.#startSync()
    if (this.protocolVersion === 2) this.#roundTrip.probe()
    try {
      for await (const { data, isBinary } of this.#connection) {
        if (this.#end !== undefined) break
        if (!isBinary) throw new FrameError('A message of the tunnel is text')
        this.#receivedBytes += data.length
        this.#receivedAtMs = this.#clock.elapsed()
        this.#receive(decodeFrame(data))
      }
    } catch (error) {
      if (!this.#isClosing) this.#break(error as Error)
    } finally {
      sync?.cancel()
      this.#destroyStreams(this.#end)
    }
    if (this.#end !== undefined && !this.#isClosing) throw this.#end
  }

  /** A stream to an address that the other side can reach. Errors arrive on the stream. */
  dial(protocol: string, address: string, { priority = 'interactive' }: { priority?: Priority } = {}): Duplex {
    const id = this.#nextDialed
    this.#nextDialed += 2
    const stream = this.#open(id, priority, true)
    if (this.#end !== undefined || this.#isClosing) {
      stream.destroy(ended(this.#end))
    } else if (this.protocolVersion === 2) {
      this.#control(id, FRAME_KINDS.open, encodeOpen({ protocol, address, priority }))
    } else {
      this.#unknownToPeer.add(id)
      this.#control(id, FRAME_KINDS.connect, encodeAddress({ protocol, address }))
    }
    return stream
  }

  /** Destroys all streams and disconnects. */
  async close(): Promise<void> {
    this.#destroyStreams()
    this.#isClosing = true
    await this.#connection.close()
  }

  #receive(frame: Frame): void {
    const { stream: id, kind, body } = frame
    if (this.protocolVersion === 2) {
      if (kind === FRAME_KINDS.open) return this.#serveStream(id, decodeOpen(body))
      if (kind === FRAME_KINDS.echo) return this.#roundTrip.answered(body)
      if (kind === FRAME_KINDS.probe) return this.#echo(body)
    } else {
      if (kind === FRAME_KINDS.connect) return this.#serveStream(id, decodeAddress(body))
      if (kind === FRAME_KINDS.sync) return this.#freeMissing(decodeSync(body))
      this.#unknownToPeer.delete(id)
    }
    const stream = this.#streams.get(id)
    if (stream === undefined) return this.#receiveForNone(frame)
    stream.handle(frame)
  }

  #serveStream(id: number, { protocol, address, priority }: ReturnType<typeof decodeOpen>): void {
    if (this.protocolVersion === 2 && (this.#isOurs(id) || id <= this.#lastAccepted)) {
      throw new FrameError(`The id ${id} of a stream is out of order`)
    }
    if (this.#streams.has(id)) return this.#refuse(id, 'the connection already exists')
    this.#lastAccepted = Math.max(this.#lastAccepted, id)
    const isFull = this.#streams.size * STREAM_BYTES + this.#bufferedBytes >= this.#maxBufferedBytes
    if (isFull) return this.#refuse(id, 'the tunnel has too many streams')
    const serve = this.#accept(protocol, address)
    if (serve === undefined) return this.#refuse(id, `connecting to ${protocol}/${address} is not allowed`)
    const stream = this.#open(id, priority, false)
    try {
      serve(stream)
    } catch (error) {
      stream.destroy(error as Error)
    }
  }

  #open(id: number, priority: Priority, isDialed: boolean): TunnelStream {
    const Stream = this.protocolVersion === 2 ? CreditStream : PausingStream
    const stream = new Stream({ id, priority, isDialed, host: this.#host })
    this.#streams.set(id, stream)
    stream.on('close', () => {
      this.#streams.delete(id)
      this.#unknownToPeer.delete(id)
      this.#missedOnce.delete(id)
    })
    // The user of the stream receives the error too; this handler prevents an unhandled one.
    stream.on('error', () => undefined)
    return stream
  }

  /** A frame may have been on its way while we closed its stream. */
  #receiveForNone({ stream: id, kind }: Frame): void {
    const wasOpen = id <= this.#lastAccepted || (this.#isOurs(id) && id < this.#nextDialed)
    if (wasOpen) return
    if (this.protocolVersion === 2) throw new FrameError(`There is no stream ${id}`)
    if (kind === FRAME_KINDS.data) this.#refuse(id, 'there is no such connection')
  }

  /** Frees the streams that the other side no longer has. It may not have read of a new one yet. */
  #freeMissing(present: ReadonlySet<number>): void {
    for (const [id, stream] of this.#streams) {
      if (present.has(id)) continue
      if (!this.#unknownToPeer.has(id) || this.#missedOnce.has(id)) {
        stream.destroy(new TunnelError('reset', 'The other side no longer has this stream'))
      } else this.#missedOnce.add(id)
    }
  }

  #startSync(): Timer | undefined {
    if (this.protocolVersion === 2 || this.#side === 'server') return undefined
    return every(this.#clock, SYNC_EVERY_MS, () => this.#control(0, FRAME_KINDS.sync, encodeSync(this.#streams.keys())))
  }

  #echo(body: Buffer): void {
    if (body.length > 8) throw new FrameError(`A probe has ${body.length} bytes`)
    this.#queue.echo(body)
  }

  #refuse(id: number, text: string): void {
    if (this.protocolVersion === 1) return this.#control(id, FRAME_KINDS.error, encodeError(text))
    this.#control(id, FRAME_KINDS.reset, encodeReset({ code: RESET_CODES.refused, text }))
  }

  #isOurs(id: number): boolean {
    return id % 2 === this.#nextDialed % 2
  }

  #control(stream: number, kind: number, body: Buffer = EMPTY_BODY): void {
    if (this.#end === undefined) this.#queue.control({ stream, kind, body })
  }

  #createHost(): StreamHost {
    const roundTrip = this.#roundTrip
    return {
      clock: this.#clock,
      get delayMs() {
        return roundTrip.shortestMs
      },
      control: (stream, kind, body) => this.#control(stream, kind, body),
      ready: (stream) => this.#queue.ready(stream),
      buffered: (bytes) => this.#addBuffered(bytes),
      reserve: (bytes) => this.#reserve(bytes),
      release: (bytes) => void (this.#windowBytes -= bytes),
    }
  }

  #addBuffered(bytes: number): void {
    this.#bufferedBytes += bytes
    if (bytes < 0 || this.#bufferedBytes <= this.#maxBufferedBytes) return
    const error = new TunnelError('overflow', `More than ${this.#maxBufferedBytes} bytes wait to be read`)
    // In version 1 the peer cannot know how much it may send, so any stream may be the next one.
    if (this.protocolVersion === 1) return this.#break(error)
    const [first, ...others] = this.#streams.values()
    others
      .reduce((most, one) => (one.bufferedBytes > most.bufferedBytes ? one : most), first as TunnelStream)
      .destroy(error)
  }

  #reserve(bytes: number): boolean {
    if (this.#windowBytes + bytes > this.#maxBufferedBytes) return false
    this.#windowBytes += bytes
    return true
  }

  /** The first error counts. Streams are destroyed at once, so that they free their memory. */
  #break(error: Error): void {
    if (this.#end !== undefined) return
    this.#end = error
    this.#connection.destroy()
    this.#destroyStreams(error)
  }

  #destroyStreams(cause?: Error): void {
    for (const stream of this.#streams.values()) stream.destroy(ended(cause))
  }
}

function ended(cause: Error | undefined): TunnelError {
  return new TunnelError('ended', 'The tunnel has ended', { cause })
}
