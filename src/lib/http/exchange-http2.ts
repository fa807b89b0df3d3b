/** Implements an exchange (a request and its response) over HTTP/2, with node:http2. */
import type { IncomingHttpHeaders } from 'node:http'
import type { IncomingHttpHeaders as Http2Headers, ServerHttp2Stream } from 'node:http2'

import { drained } from '../drained.ts'
import { readWhole } from './body.ts'
import type { Connection } from './connection.ts'
import type { Exchange, Growing, HeaderList, Peer, Pieces, ResponseWriter, SharedFrame, Upgraded } from './exchange.ts'
import { INTERNAL_ERROR, PLAIN_TEXT, sendPieces } from './exchange.ts'
import { HOP_BY_HOP } from './hop-by-hop.ts'
import { HTTP2_CODES, resetStream } from './http2-reset.ts'
import type { ServerContext } from './server-context.ts'
import { bePatient } from './stalls.ts'

export class Http2Exchange implements Exchange {
  readonly version = '2' as const
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: HeaderList
  readonly peer: Peer
  readonly #stream: ServerHttp2Stream
  readonly #context: ServerContext
  #signal: AbortSignal | undefined

  constructor(
    stream: ServerHttp2Stream,
    head: { headers: Http2Headers; rawHeaders: HeaderList },
    on: { connection: Connection; context: ServerContext },
  ) {
    this.#stream = stream
    this.#context = on.context
    this.peer = on.connection.peer
    this.method = head.headers[':method'] ?? ''
    this.path = head.headers[':path'] ?? ''
    this.headers = head.headers
    this.rawHeaders = head.rawHeaders
  }

  get authority(): string {
    return (this.headers as Http2Headers)[':authority'] ?? this.headers.host ?? ''
  }

  get upgradeProtocol(): string | undefined {
    const protocol = this.method === 'CONNECT' ? (this.headers as Http2Headers)[':protocol'] : undefined
    return typeof protocol === 'string' ? protocol.toLowerCase() : undefined
  }

  get isAnswered(): boolean {
    return this.#stream.headersSent
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const control = new AbortController()
      this.#signal = control.signal
      const gone = (): void => {
        // `aborted` means that our side was still open; node ends it on the way, so that it looks finished.
        if (this.#stream.aborted) control.abort(new Error('The client has gone'))
      }
      if (this.#stream.destroyed) gone()
      else this.#stream.once('close', gone)
    }
    return this.#signal
  }

  async readBody(limitBytes: number, growing?: Growing): Promise<Buffer> {
    if (this.#stream.endAfterHeaders) return Buffer.alloc(0)
    const { bodyDeadlines: deadlines, limits } = this.#context
    const contentLength = this.headers['content-length']
    return readWhole(this.#stream, { deadlines, limitBytes, timeoutMs: limits.bodyTimeoutMs, contentLength, growing })
  }

  body(): AsyncIterable<Buffer> {
    return this.#stream
  }

  respond(status: number, headers: HeaderList, body: string | Buffer = ''): void {
    const stream = this.#stream
    if (stream.destroyed) return
    const hasBody = body.length > 0 && this.method !== 'HEAD'
    const length = status === 204 || status === 304 ? undefined : body.length
    stream.respond(this.#complete(status, headers, length), { endStream: !hasBody })
    if (hasBody) stream.end(body, 'latin1')
    this.#dropUnread()
  }

  async respondPieces(status: number, headers: HeaderList, { pieces, lengthBytes }: Pieces): Promise<void> {
    const writer = this.#begin(this.#complete(status, headers, lengthBytes))
    if (this.method === 'HEAD') return
    await sendPieces(writer, pieces)
  }

  stream(status: number, headers: HeaderList): ResponseWriter {
    return this.#begin(this.#complete(status, headers, undefined))
  }

  upgrade(headers: HeaderList = []): Upgraded {
    if (this.upgradeProtocol === undefined) throw new Error('This exchange has no stream to hand over')
    // Those of the handshake of HTTP/1.1 are no headers of HTTP/2.
    const kept = headers.filter((_, at) => !HOP_BY_HOP.has((headers[at - (at % 2)] ?? '').toLowerCase()))
    this.#stream.respond(this.#complete(200, kept, undefined))
    bePatient(this.#stream)
    return { socket: this.#stream, head: Buffer.alloc(0) }
  }

  fail(): void {
    const stream = this.#stream
    if (stream.destroyed || stream.writableEnded) return
    if (!stream.headersSent) return this.respond(500, PLAIN_TEXT, INTERNAL_ERROR)
    resetStream(stream, HTTP2_CODES.internalError)
  }

  #begin(headers: string[]): ResponseWriter {
    if (!this.#stream.destroyed) this.#stream.respond(headers, { endStream: this.method === 'HEAD' })
    return new Http2Writer(this.#stream)
  }

  #complete(status: number, headers: HeaderList, length: number | undefined): string[] {
    const out = [':status', String(status), ...headers, 'date', this.#context.httpDate()]
    if (length !== undefined) out.push('content-length', String(length))
    return out
  }

  /** Resets the stream of a client that is still sending its body, after the response: a reset would overtake it. */
  #dropUnread(): void {
    const stream = this.#stream
    if (stream.endAfterHeaders || stream.readableEnded) return
    stream.once('finish', () => {
      setImmediate(() => {
        if (!stream.destroyed && !stream.readableEnded) stream.close(HTTP2_CODES.noError)
      })
    })
  }
}

class Http2Writer implements ResponseWriter {
  readonly #stream: ServerHttp2Stream

  constructor(stream: ServerHttp2Stream) {
    this.#stream = stream
  }

  get isClosed(): boolean {
    return this.#stream.destroyed || this.#stream.closed || this.#stream.writableEnded
  }

  write(piece: Buffer): boolean {
    return this.isClosed || this.#stream.write(piece)
  }

  writeFrame(frame: SharedFrame): boolean {
    return this.write(frame.body)
  }

  drained(): Promise<void> {
    return this.isClosed || !this.#stream.writableNeedDrain ? Promise.resolve() : drained(this.#stream)
  }

  bePatient(): void {
    bePatient(this.#stream)
  }

  end(): void {
    if (!this.isClosed) this.#stream.end()
  }

  abort(): void {
    resetStream(this.#stream, HTTP2_CODES.internalError)
  }

  onClose(task: () => void): void {
    if (this.#stream.destroyed) task()
    else this.#stream.once('close', task)
  }
}
