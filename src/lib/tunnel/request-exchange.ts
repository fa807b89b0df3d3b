/** Implements an exchange (a request and its response) over a stream of a tunnel. The heads are in `request-head.ts`. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Duplex } from 'node:stream'

import { drained } from '../drained.ts'
import { collectBody } from '../http/body.ts'
import type {
  Exchange,
  Growing,
  HeaderList,
  Peer,
  Pieces,
  ResponseWriter,
  SharedFrame,
  Upgraded,
} from '../http/exchange.ts'
import { headersOf, INTERNAL_ERROR, PLAIN_TEXT, sendPieces } from '../http/exchange.ts'
import { readPieces } from '../http/response.ts'
import { announcedLength, encodeHead, HeadError, type TunnelRequest } from './request-head.ts'

/** The other side of the tunnel; the address of the client is in a header, if anywhere. */
const PEER: Peer = {
  address: '',
  port: 0,
  isEncrypted: true,
  serverName: undefined,
  certificate: undefined,
  isTrusted: false,
  chain: () => [],
}

export class RequestExchange implements Exchange {
  readonly version = '1.1' as const
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: HeaderList
  readonly peer: Peer = PEER
  readonly upgradeProtocol: string | undefined
  readonly #stream: Duplex
  readonly #hasBody: boolean
  readonly #lengthBytes: number | undefined
  #signal: AbortSignal | undefined
  #isAnswered = false

  /** Throws HeadError if the headers contradict what follows. */
  constructor(stream: Duplex, { method, path, headers, follows }: TunnelRequest, upgrades: ReadonlySet<string>) {
    this.#stream = stream
    this.method = method
    this.path = path
    this.rawHeaders = headers
    this.headers = headersOf(headers)
    const { upgrade = '', 'content-length': contentLength } = this.headers
    const protocol = upgrade.toLowerCase()
    this.upgradeProtocol = follows === 'upgrade' && upgrades.has(protocol) ? protocol : undefined
    this.#hasBody = follows === 'body'
    this.#lengthBytes = announcedLength(contentLength)
    if (!this.#hasBody && (this.#lengthBytes ?? 0) > 0) throw new HeadError('The request announces a body and has none')
    // As HTTP/1.1 announces a body without a length.
    delete this.headers['transfer-encoding']
    if (this.#hasBody && this.#lengthBytes === undefined) this.headers['transfer-encoding'] = 'chunked'
    // The end of the stream must be read, so that it closes.
    if (follows === 'end') stream.resume()
  }

  get authority(): string {
    return this.headers.host ?? ''
  }

  get isAnswered(): boolean {
    return this.#isAnswered
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      const control = new AbortController()
      this.#signal = control.signal
      const gone = (): void => {
        if (!this.#stream.writableFinished) control.abort(new Error('The client has gone'))
      }
      if (this.#stream.closed) gone()
      else this.#stream.once('close', gone)
    }
    return this.#signal
  }

  /** Without a limit of time: the server of the tunnel may take as long as its client. */
  readBody(limitBytes: number, growing?: Growing): Promise<Buffer> {
    return collectBody(this.body(), limitBytes, growing)
  }

  /** Has exactly the announced length, so that no part of it can pass for another request. */
  body(): AsyncIterable<Buffer> {
    return this.#hasBody ? readPieces(this.#stream, { lengthBytes: this.#lengthBytes, isKept: true }) : nothing()
  }

  respond(status: number, headers: HeaderList, body: string | Buffer = ''): void {
    const writer = this.#begin(status, headers, status === 204 || status === 304 ? undefined : body.length)
    if (this.method !== 'HEAD' && body.length > 0)
      writer.write(typeof body === 'string' ? Buffer.from(body, 'latin1') : body)
    writer.end()
  }

  async respondPieces(status: number, headers: HeaderList, { pieces, lengthBytes }: Pieces): Promise<void> {
    const writer = this.#begin(status, headers, lengthBytes)
    if (this.method === 'HEAD') return writer.end()
    await sendPieces(writer, pieces)
  }

  stream(status: number, headers: HeaderList): ResponseWriter {
    return this.#begin(status, headers, undefined)
  }

  upgrade(headers?: HeaderList): Upgraded {
    if (this.upgradeProtocol === undefined || headers === undefined)
      throw new Error('This exchange has no connection to hand over')
    this.#isAnswered = true
    this.#stream.write(encodeHead({ status: 101, headers: inLowerCase(headers) }))
    return { socket: this.#stream, head: Buffer.alloc(0) }
  }

  fail(): void {
    if (!this.#isAnswered) this.respond(500, PLAIN_TEXT, INTERNAL_ERROR)
    else if (!this.#stream.writableEnded) this.#stream.destroy(brokenOff())
  }

  /** The head and the pieces that are written in this turn leave together. */
  #begin(status: number, headers: HeaderList, length: number | undefined): RequestWriter {
    const list = inLowerCase(headers)
    if (length !== undefined) list.push('content-length', String(length))
    const head = encodeHead({ status, headers: list })
    this.#isAnswered = true
    const stream = this.#stream
    if (!stream.destroyed) {
      stream.cork()
      stream.write(head)
      setImmediate(() => stream.uncork())
    }
    return new RequestWriter(stream)
  }
}

function inLowerCase(headers: HeaderList): string[] {
  return headers.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text))
}

async function* nothing(): AsyncGenerator<Buffer> {
  // The request has no body.
}

function brokenOff(): Error {
  return new Error('The response was broken off')
}

class RequestWriter implements ResponseWriter {
  readonly #stream: Duplex

  constructor(stream: Duplex) {
    this.#stream = stream
  }

  get isClosed(): boolean {
    return this.#stream.destroyed || this.#stream.writableEnded
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

  /** The window of the stream limits what waits for a slow reader. */
  bePatient(): void {}

  end(): void {
    if (!this.isClosed) this.#stream.end()
  }

  abort(): void {
    this.#stream.destroy(brokenOff())
  }

  onClose(task: () => void): void {
    if (this.#stream.closed) task()
    else this.#stream.once('close', task)
  }
}
