/**
 * A SPDY/3.1 connection: many streams over one upgraded socket, for exec, attach and port forwarding. Like Kubernetes'
 * peers it has no flow-control windows, so a slow reader stops the whole connection.
 */
import type { Duplex } from 'node:stream'

import { type Clock, every, type Timer } from '../clock.ts'
import { drained } from '../drained.ts'
import {
  controlFrame,
  dataHead,
  FLAG_FIN,
  type Frame,
  FrameParser,
  GOAWAY,
  HEADERS,
  PING,
  RST_STREAM,
  SYN_REPLY,
  SYN_STREAM,
  words,
} from './frames.ts'
import { HeaderReader, type SpdyHeaders, HeaderWriter } from './header-block.ts'
import { SpdyError, SpdyStream, type StreamOutput } from './stream.ts'

export interface SpdyOptions {
  readonly clock: Clock
  /** The role: clients number their streams odd, servers even. */
  readonly role: 'client' | 'server'
  /** Bytes that arrived with the upgrade. */
  readonly head?: Buffer
  /** Called with a stream that the peer opened, after it was accepted. Without it, such streams are refused. */
  readonly onStream?: (stream: SpdyStream) => void
  /** Keeps what is between us from taking the connection for dead. None unless given. */
  readonly pingIntervalMs?: number
}

/** How long a peer may take to say that it takes a stream. */
const REPLY_TIMEOUT_MS = 30_000

/**
 * The maximum of queued control frames. Pings and refusals are answered at once, since waiting would stop unrelated
 * streams; a peer that sends them and never reads is disconnected, as by Go's HTTP/2 server, which has this number.
 */
const MAX_QUEUED_FRAMES = 10_000

/** Streams a peer may have open: forwarding a port takes two for each connection. */
const MAX_PEER_STREAMS = 4096

const REFUSED = 3
const CANCEL = 5

export class SpdyConnection {
  readonly #socket: Duplex
  readonly #options: SpdyOptions
  readonly #streams = new Map<number, SpdyStream>()
  readonly #writer = new HeaderWriter()
  readonly #reader = new HeaderReader()
  readonly #closed = Promise.withResolvers<void>()
  readonly #pings: Timer | undefined
  #nextId: number
  #nextPing: number
  #lastPeerId = 0
  #queuedFrames = 0
  #isGone = false
  /** The peer sent GOAWAY: later ends are regular. */
  #isLeaving = false

  constructor(socket: Duplex, options: SpdyOptions) {
    this.#socket = socket
    this.#options = options
    this.#nextId = options.role === 'client' ? 1 : 2
    this.#nextPing = this.#nextId
    const { pingIntervalMs, clock } = options
    this.#pings = pingIntervalMs === undefined ? undefined : every(clock, pingIntervalMs, () => this.#ping())
    socket.on('error', () => undefined)
    void this.#serve(options.head ?? Buffer.alloc(0))
  }

  /** Resolves when the connection has ended for any reason. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  /** Opens a stream; resolves when the peer has taken it. Rejects with SpdyError. */
  async open(headers: SpdyHeaders): Promise<SpdyStream> {
    if (this.#isGone || this.#isLeaving) throw new SpdyError('broken', 'The connection is gone')
    const id = this.#nextId
    this.#nextId += 2
    const stream = new SpdyStream(id, headers, this.#output())
    this.#streams.set(id, stream)
    const block = this.#writer.write(headers)
    // No parent, lowest priority but one, no certificate: peers ignore them.
    this.#send(controlFrame(SYN_STREAM, 0, Buffer.concat([words(id, 0), Buffer.alloc(2), block])))
    const timer = this.#options.clock.after(REPLY_TIMEOUT_MS, () => stream.refused('timeout'))
    try {
      await stream.taken
    } finally {
      timer.cancel()
    }
    return stream
  }

  /** Says goodbye and ends the connection once everything written is on its way. */
  close(): void {
    if (this.#isGone) return
    for (const stream of this.#streams.values()) if (!stream.isEnded) this.#reset(stream.id, CANCEL)
    this.#send(controlFrame(GOAWAY, 0, words(this.#lastPeerId, 0)))
    this.#isLeaving = true
    this.#socket.end(() => this.#socket.destroy())
  }

  /** Ends it without a word. */
  destroy(): void {
    this.#socket.destroy()
  }

  async #serve(head: Buffer): Promise<void> {
    const parser = new FrameParser()
    try {
      for (const frame of parser.push(head)) await this.#handle(frame)
      for await (const bytes of this.#socket) {
        for (const frame of parser.push(bytes as Buffer)) await this.#handle(frame)
      }
    } catch {
      // Broken or not SPDY: only the streams can be notified, below.
    }
    this.#finish()
  }

  #finish(): void {
    this.#isGone = true
    this.#pings?.cancel()
    this.#reader.close()
    this.#socket.destroy()
    for (const stream of this.#streams.values()) stream.lost(this.#isLeaving)
    this.#streams.clear()
    this.#closed.resolve()
  }

  async #handle(frame: Frame): Promise<void> {
    if (frame.type === 'data') return this.#data(frame)
    const { kind, flags, payload } = frame
    const id = payload.length >= 4 ? payload.readUInt32BE(0) & 0x7fffffff : 0
    switch (kind) {
      case SYN_STREAM:
        return this.#opened(id, flags, await this.#reader.read(payload.subarray(10)))
      case SYN_REPLY:
        // Inflated in any case: the next block depends on this one.
        await this.#reader.read(payload.subarray(4))
        return this.#streams.get(id)?.accepted()
      case HEADERS:
        await this.#reader.read(payload.subarray(4))
        return
      case RST_STREAM:
        return this.#wasReset(id)
      case PING:
        // Ours come back by themselves.
        if (id % 2 !== this.#nextPing % 2) this.#send(controlFrame(PING, 0, words(payload.readUInt32BE(0))))
        return
      case GOAWAY:
        this.#isLeaving = true
        return
      default:
      // Settings and windows change nothing here.
    }
  }

  async #data({ streamId, flags, data }: Frame & { type: 'data' }): Promise<void> {
    const stream = this.#streams.get(streamId)
    // Bytes of a stream that has gone were on their way.
    if (stream === undefined) return
    await stream.received(data)
    if ((flags & FLAG_FIN) !== 0) this.#remoteEnd(stream)
  }

  #opened(id: number, flags: number, headers: SpdyHeaders): void {
    const { onStream } = this.#options
    const isTheirs = id % 2 !== this.#nextId % 2 && id > this.#lastPeerId
    const isRefused = onStream === undefined || this.#isLeaving || this.#streams.size >= MAX_PEER_STREAMS
    if (!isTheirs || isRefused) return this.#reset(id, REFUSED)
    this.#lastPeerId = id
    const stream = new SpdyStream(id, headers, this.#output())
    this.#streams.set(id, stream)
    stream.accepted()
    this.#send(controlFrame(SYN_REPLY, 0, Buffer.concat([words(id), this.#writer.write([])])))
    if ((flags & FLAG_FIN) !== 0) this.#remoteEnd(stream)
    onStream(stream)
  }

  #remoteEnd(stream: SpdyStream): void {
    stream.finished()
    if (stream.isEnded) this.#streams.delete(stream.id)
  }

  #wasReset(id: number): void {
    const stream = this.#streams.get(id)
    this.#streams.delete(id)
    stream?.wasReset()
  }

  #output(): StreamOutput {
    return {
      send: (id, data, isLast) => this.#write(id, data, isLast),
      reset: (id) => {
        this.#streams.delete(id)
        this.#reset(id, CANCEL)
      },
    }
  }

  async #write(id: number, data: Buffer, isLast: boolean): Promise<void> {
    if (this.#isGone || this.#socket.destroyed) throw new SpdyError('broken', 'The connection is gone')
    this.#socket.write(dataHead(id, data.length, isLast ? FLAG_FIN : 0))
    const stream = this.#streams.get(id)
    if (isLast && stream?.isFinished === true) this.#streams.delete(id)
    if (data.length > 0 && !this.#socket.write(data)) await drained(this.#socket)
  }

  #reset(id: number, status: number): void {
    this.#send(controlFrame(RST_STREAM, 0, words(id, status)))
  }

  #ping(): void {
    this.#send(controlFrame(PING, 0, words(this.#nextPing)))
    this.#nextPing = (this.#nextPing + 2) & 0x7fffffff
  }

  #send(frame: Buffer): void {
    if (this.#isGone || !this.#socket.writable) return
    if (++this.#queuedFrames > MAX_QUEUED_FRAMES) return this.destroy()
    this.#socket.write(frame, () => this.#queuedFrames--)
  }
}
