/** Implements an exchange (a request and its response) over HTTP/1.1, with node:http. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

import { readWhole } from './body.ts'
import type { Connection } from './connection.ts'
import type { Exchange, Growing, HeaderList, Peer, Pieces, ResponseWriter, SharedFrame, Upgraded } from './exchange.ts'
import { INTERNAL_ERROR, PLAIN_TEXT, sendPieces } from './exchange.ts'
import { http } from './node-http.ts'
import type { ServerContext } from './server-context.ts'
import { bePatient } from './stalls.ts'

/** Bytes become a string up to this size; beyond, copying them costs more than a second write. */
const SMALL_BODY_BYTES = 16 << 10

export class Http1Exchange implements Exchange {
  readonly version = '1.1' as const
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly peer: Peer
  readonly upgradeProtocol: string | undefined
  readonly #request: IncomingMessage
  readonly #context: ServerContext
  #response: ServerResponse | undefined
  /** Present until the connection was handed over or answered. */
  #raw: { readonly socket: Duplex; readonly head: Buffer } | undefined
  #signal: AbortSignal | undefined
  /** The rest of the body is not worth waiting for: the connection ends with the answer. */
  #isBodyAbandoned = false

  constructor(request: IncomingMessage, connection: Connection, context: ServerContext) {
    this.#request = request
    this.#context = context
    this.peer = connection.peer
    this.method = request.method ?? ''
    this.path = request.url ?? ''
    this.headers = request.headers
  }

  /** An ordinary exchange. */
  static of(
    request: IncomingMessage,
    response: ServerResponse,
    on: { connection: Connection; context: ServerContext },
  ): Http1Exchange {
    const exchange = new Http1Exchange(request, on.connection, on.context)
    exchange.#response = response
    return exchange
  }

  /** An exchange that may take over the socket. Any other response is the last on this connection. */
  static ofUpgrade(
    request: IncomingMessage,
    raw: Upgraded,
    on: { connection: Connection; context: ServerContext },
  ): Http1Exchange {
    const exchange = new Http1Exchange(request, on.connection, on.context)
    exchange.#raw = raw
    ;(exchange as { upgradeProtocol: string | undefined }).upgradeProtocol = request.headers.upgrade?.toLowerCase()
    return exchange
  }

  get authority(): string {
    return this.headers.host ?? ''
  }

  get rawHeaders(): HeaderList {
    return this.#request.rawHeaders
  }

  get isAnswered(): boolean {
    return this.#response?.headersSent ?? this.#raw === undefined
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const control = new AbortController()
      this.#signal = control.signal
      onceGone(this.#response ?? this.#request.socket, () => {
        if (this.#response?.writableFinished !== true) control.abort(new Error('The client has gone'))
      })
    }
    return this.#signal
  }

  readBody(limitBytes: number, growing?: Growing): Promise<Buffer> {
    const { headers } = this
    const contentLength = headers['content-length']
    if (contentLength === undefined && headers['transfer-encoding'] === undefined)
      return Promise.resolve(Buffer.alloc(0))
    const { bodyDeadlines: deadlines, limits } = this.#context
    const failed = (): void => void (this.#isBodyAbandoned = true)
    const timeoutMs = limits.bodyTimeoutMs
    return readWhole(this.#request, { deadlines, limitBytes, timeoutMs, contentLength, growing, failed })
  }

  body(): AsyncIterable<Buffer> {
    return this.#request
  }

  respond(status: number, headers: HeaderList, body: string | Buffer = ''): void {
    const response = this.#begin()
    // latin1 has one byte per character, so that the length is right for both.
    response.writeHead(status, this.#complete(headers, status === 204 || status === 304 ? undefined : body.length))
    // A string is joined with the head and leaves in one write; see the measurements in docs on hot paths.
    const isSmall = typeof body !== 'string' && body.length <= SMALL_BODY_BYTES
    response.end(isSmall ? body.toString('latin1') : body, 'latin1')
  }

  async respondPieces(status: number, headers: HeaderList, { pieces, lengthBytes }: Pieces): Promise<void> {
    const writer = this.#stream(status, this.#complete(headers, lengthBytes))
    if (this.method === 'HEAD') return writer.end()
    await sendPieces(writer, pieces)
  }

  stream(status: number, headers: HeaderList): ResponseWriter {
    return this.#stream(status, this.#complete(headers, undefined))
  }

  upgrade(headers?: HeaderList): Upgraded {
    const raw = this.#raw
    if (raw === undefined || this.#response !== undefined)
      throw new Error('This exchange has no connection to hand over')
    this.#raw = undefined
    bePatient(raw.socket)
    if (headers !== undefined) raw.socket.write(switchingProtocols(headers), 'latin1')
    return raw
  }

  fail(): void {
    if (this.#response === undefined ? this.#raw === undefined : this.#response.writableEnded) return
    if (!this.isAnswered) return this.respond(500, PLAIN_TEXT, INTERNAL_ERROR)
    this.#response?.destroy()
  }

  #stream(status: number, headers: string[]): ResponseWriter {
    const response = this.#begin()
    response.writeHead(status, headers)
    return new Http1Writer(response)
  }

  #begin(): ServerResponse {
    if (this.#response === undefined) {
      const response = new http.ServerResponse(this.#request)
      response.shouldKeepAlive = false
      response.assignSocket(this.#request.socket)
      response.on('finish', () => this.#request.socket.destroySoon())
      this.#response = response
    }
    this.#response.sendDate = false
    return this.#response
  }

  #complete(headers: HeaderList, length: number | undefined): string[] {
    const out = [...headers, 'Date', this.#context.httpDate()]
    if (length !== undefined) out.push('Content-Length', String(length))
    if (this.#context.isDraining || this.#isBodyAbandoned) out.push('Connection', 'close')
    return out
  }
}

function switchingProtocols(headers: HeaderList): string {
  let text = 'HTTP/1.1 101 Switching Protocols\r\n'
  for (let at = 0; at + 1 < headers.length; at += 2) text += `${headers[at]}: ${headers[at + 1]}\r\n`
  return `${text}\r\n`
}

function onceGone(
  target: { once(event: 'close', task: () => void): unknown; readonly destroyed: boolean },
  task: () => void,
): void {
  if (target.destroyed) task()
  else target.once('close', task)
}

class Http1Writer implements ResponseWriter {
  readonly #response: ServerResponse
  /** The head leaves with the first piece or the end, in one write, and alone if neither comes in this turn. */
  #isHeadSent = false

  constructor(response: ServerResponse) {
    this.#response = response
    setImmediate(() => {
      if (!this.#isHeadSent && !this.isClosed) response.flushHeaders()
      this.#isHeadSent = true
    })
  }

  get isClosed(): boolean {
    return this.#response.closed || this.#response.destroyed || this.#response.writableEnded
  }

  write(piece: Buffer): boolean {
    // An empty chunk would say that the body is complete.
    if (this.isClosed || piece.length === 0) return true
    this.#isHeadSent = true
    return this.#response.write(piece)
  }

  writeFrame(frame: SharedFrame): boolean {
    if (!this.#isHeadSent) return this.write(frame.body)
    if (this.isClosed) return true
    const { socket } = this.#response
    // Straight to the socket only when nothing of this or an earlier response is waiting before it.
    const isNext =
      socket !== null && this.#response.chunkedEncoding && this.#response.writableLength === socket.writableLength
    return isNext ? socket.write(frame.chunked) : this.#response.write(frame.body)
  }

  drained(): Promise<void> {
    const response = this.#response
    const { socket } = response
    // The response knows its own queued bytes, and the socket those of frames written directly.
    const isBehind = (): boolean =>
      socket?.writableNeedDrain === true || response.writableLength >= response.writableHighWaterMark
    if (this.isClosed || !isBehind()) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        socket?.off('drain', done)
        response.off('drain', done)
        response.off('close', done)
        resolve()
      }
      socket?.on('drain', done)
      response.on('drain', done)
      response.on('close', done)
      // Node hands corked bytes over in the next tick. If the socket has room for them, there is no event.
      setImmediate(() => {
        if (!isBehind()) done()
      })
    })
  }

  bePatient(): void {
    const { socket } = this.#response
    // The connection must not be reused by a later request.
    if (socket !== null) this.onClose(bePatient(socket))
  }

  end(): void {
    if (!this.isClosed) this.#response.end()
  }

  abort(): void {
    this.#response.destroy()
  }

  onClose(task: () => void): void {
    onceGone(this.#response, task)
  }
}
