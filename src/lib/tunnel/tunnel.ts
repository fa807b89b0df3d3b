/**
 * Connections through one WebSocket. One side opens connections with `dial`; the other side connects to allowed
 * addresses. A slow reader stops only its own connection.
 */
import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { callbackify } from 'node:util'

import type { WebSocketConnection } from '../http/websocket.ts'
import { decodeFrame, encodeFrame, type Frame, FRAME_KINDS, FrameError } from './frames.ts'

export interface TunnelOptions {
  /**
   * Decides whether the other side may connect to an address, such as `tcp` to `127.0.0.1:10250`. The default allows
   * none.
   */
  readonly allows?: (protocol: string, address: string) => boolean
}

/** The limit of buffered bytes for a connection whose peer ignores backpressure. */
const MAX_WAITING_BYTES = 4 << 20

export class Tunnel {
  readonly #connection: WebSocketConnection
  readonly #allows: NonNullable<TunnelOptions['allows']>
  readonly #streams = new Map<number, TunnelStream>()
  #nextMessage = 1
  #nextConnection = 1

  constructor(connection: WebSocketConnection, { allows = () => false }: TunnelOptions = {}) {
    this.#connection = connection
    this.#allows = allows
  }

  /** Reads until the other side disconnects; rejects with the error that broke the connection. */
  async serve(): Promise<void> {
    try {
      for await (const { data } of this.#connection) this.#receive(decodeFrame(data))
    } catch (error) {
      if (error instanceof FrameError) this.#connection.destroy()
      throw error
    } finally {
      for (const stream of this.#streams.values()) stream.destroy(new Error('The tunnel has ended'))
    }
  }

  /** A connection to an address that the other side can reach. Errors arrive on the stream. */
  dial(protocol: string, address: string): Duplex {
    const id = this.#nextConnection++
    const stream = this.#open(id)
    void this.send({ connection: id, kind: FRAME_KINDS.connect, body: Buffer.from(`${protocol}/${address}`) })
    return stream
  }

  /** Never rejects: `serve` reports a lost peer. */
  async send(frame: Frame): Promise<void> {
    await this.#connection.send(encodeFrame(this.#nextMessage++, frame)).catch(() => undefined)
  }

  #open(id: number): TunnelStream {
    const stream = new TunnelStream(id, this)
    this.#streams.set(id, stream)
    stream.on('close', () => this.#streams.delete(id))
    // The user of the stream receives the error too; this handler prevents an unhandled one.
    stream.on('error', () => undefined)
    return stream
  }

  #receive({ connection, kind, body }: Frame): void {
    if (kind === FRAME_KINDS.connect) return this.#accept(connection, body.toString())
    const stream = this.#streams.get(connection)
    if (stream === undefined) {
      if (kind === FRAME_KINDS.data) void this.#refuse(connection, 'there is no such connection')
      return
    }
    if (kind === FRAME_KINDS.data) stream.receive(body)
    if (kind === FRAME_KINDS.error) stream.closeFromAfar(body.toString())
    if (kind === FRAME_KINDS.pause) stream.pauseWriting()
    if (kind === FRAME_KINDS.resume) stream.resumeWriting()
  }

  #accept(connection: number, wanted: string): void {
    const at = wanted.indexOf('/')
    const [protocol, address] = [wanted.slice(0, at), wanted.slice(at + 1)]
    if (this.#streams.has(connection)) return void this.#refuse(connection, 'the connection already exists')
    const colon = address.lastIndexOf(':')
    if (protocol !== 'tcp' || colon < 0 || !this.#allows(protocol, address))
      return void this.#refuse(connection, `connecting to ${wanted} is not allowed`)
    const stream = this.#open(connection)
    const host = address.slice(0, colon).replace(/^\[(.*)\]$/, '$1')
    join(stream, connect({ host, port: Number(address.slice(colon + 1)), allowHalfOpen: true }))
  }

  #refuse(connection: number, reason: string): Promise<void> {
    return this.send({ connection, kind: FRAME_KINDS.error, body: Buffer.from(reason) })
  }
}

function join(stream: TunnelStream, socket: Socket): void {
  socket.on('error', (error) => stream.destroy(error))
  socket.on('close', () => stream.destroy())
  stream.on('close', () => socket.destroy())
  stream.pipe(socket)
  socket.pipe(stream)
}

class TunnelStream extends Duplex {
  readonly #id: number
  readonly #tunnel: Tunnel
  /** We asked the other side to pause. */
  #isPaused = false
  /** The other side asked us to pause; resolved when it resumes. */
  #mayWrite: PromiseWithResolvers<void> | undefined
  #hasEnded = false

  constructor(id: number, tunnel: Tunnel) {
    super({ allowHalfOpen: true })
    this.#id = id
    this.#tunnel = tunnel
  }

  receive(body: Buffer): void {
    if (this.#hasEnded || this.destroyed) return
    if (this.push(body)) return
    if (this.readableLength > MAX_WAITING_BYTES) this.destroy(new Error('the peer ignored backpressure'))
    if (this.#isPaused) return
    this.#isPaused = true
    void this.#tell(FRAME_KINDS.pause)
  }

  /** The other side closed the connection, normally or with an error. */
  closeFromAfar(reason: string): void {
    this.#hasEnded = true
    if (reason === EOF) return void this.push(null)
    this.destroy(new Error(reason))
  }

  pauseWriting(): void {
    this.#mayWrite ??= Promise.withResolvers()
  }

  resumeWriting(): void {
    this.#mayWrite?.resolve()
    this.#mayWrite = undefined
  }

  override _read(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    void this.#tell(FRAME_KINDS.resume)
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error) => void): void {
    callbackify(() => this.#send(chunk))(done)
  }

  override _final(done: (error?: Error) => void): void {
    callbackify(() => this.#tell(FRAME_KINDS.error, EOF))(done)
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.resumeWriting()
    if (!this.#hasEnded) void this.#tell(FRAME_KINDS.error, error?.message ?? EOF)
    this.#hasEnded = true
    done(error)
  }

  async #send(chunk: Buffer): Promise<void> {
    await this.#mayWrite?.promise
    await this.#tunnel.send({ connection: this.#id, kind: FRAME_KINDS.data, body: chunk })
  }

  #tell(kind: Frame['kind'], text = ''): Promise<void> {
    return this.#tunnel.send({ connection: this.#id, kind, body: Buffer.from(text) })
  }
}

const EOF = 'EOF'
