/**
 * Sends requests of this process to its own server without the network. The requests pass all filters; their identity
 * is asserted instead of authenticated.
 */
import type { IncomingHttpHeaders } from 'node:http'

import { onAbort } from '../abort.ts'
import type { Clock } from '../clock.ts'
import { bodyTooLarge, collectBody } from './body.ts'
import type { HttpClient, HttpRequest } from './client.ts'
import {
  type Exchange,
  type Growing,
  type HeaderList,
  headersOf,
  INTERNAL_ERROR,
  type Peer,
  type Pieces,
  PLAIN_TEXT,
  type ResponseWriter,
  sendPieces,
  type SharedFrame,
} from './exchange.ts'
import { HttpError } from './http-error.ts'
import { LoopbackBody } from './loopback-body.ts'
import { type HttpResponse, type ResponseHead, sharedResponse, wholeResponse } from './response.ts'

export interface LoopbackOptions {
  readonly serve: (exchange: Exchange) => Promise<void>
  readonly clock: Clock
  /** The sender of its requests, for the server's authentication: see `LoopbackExchange.identity`. */
  readonly identity: unknown
}

/** Only path and query of a URL count. A pending request ends with its signal or time limit. */
export function createLoopbackClient({ serve, clock, identity }: LoopbackOptions): Pick<HttpClient, 'request'> {
  return {
    request(request) {
      const exchange = new LoopbackExchange(request, clock, identity)
      serve(exchange).then(
        () => exchange.fail(),
        () => exchange.fail(),
      )
      return exchange.answer
    },
  }
}

/** Everything in reach, and nothing of it to be trusted. */
const SELF: Peer = {
  address: '127.0.0.1',
  port: 0,
  isEncrypted: true,
  serverName: undefined,
  certificate: undefined,
  isTrusted: false,
  chain: () => [],
}

/** The number of waiting bytes above which the writer must wait. */
const BUFFER_BYTES = 64 << 10

export class LoopbackExchange implements Exchange {
  readonly version = '2' as const
  readonly method: string
  readonly path: string
  readonly authority: string
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: HeaderList
  readonly peer: Peer = SELF
  readonly upgradeProtocol = undefined
  readonly identity: unknown
  readonly #clock: Clock
  readonly #request: HttpRequest
  readonly #answer = Promise.withResolvers<HttpResponse>()
  /** Of an answer that goes on; most come as a whole, and a stream costs more than all else that is done here. */
  #body: LoopbackBody | undefined
  readonly #gone = new AbortController()
  /** Stops listening for reasons to give up. */
  #settle: () => void = () => undefined
  #isAnswered = false
  #isGivenUp = false

  constructor(request: HttpRequest, clock: Clock, identity: unknown) {
    const { method = 'GET', url, path, headers = {}, signal, timeoutMs } = request
    const { host, pathname, search } = new URL(url, 'https://localhost')
    this.method = method
    this.path = path ?? pathname + search
    this.authority = host
    this.rawHeaders = Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((one) => [name, one]))
    this.headers = headersOf(this.rawHeaders)
    this.identity = identity
    this.#clock = clock
    this.#request = request
    const unhook = onAbort(signal, () =>
      this.#giveUp(new HttpError('aborted', 'The request was given up', { cause: signal?.reason })),
    )
    const late = (): void => this.#giveUp(new HttpError('timeout', `The request took longer than ${timeoutMs} ms`))
    const timer = timeoutMs === undefined ? undefined : clock.after(timeoutMs, late)
    this.#settle = () => {
      unhook()
      timer?.cancel()
    }
    // Given up before it began.
    if (this.#isGivenUp) this.#settle()
  }

  /** The client's response. Rejects with HttpError if the client aborts or the server sends nothing. */
  get answer(): Promise<HttpResponse> {
    return this.#answer.promise
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  get isAnswered(): boolean {
    return this.#isAnswered
  }

  async readBody(limitBytes: number, growing?: Growing): Promise<Buffer> {
    const { body } = this.#request
    if (typeof body === 'string' || Buffer.isBuffer(body))
      return readWhole(typeof body === 'string' ? Buffer.from(body) : body, limitBytes, growing)
    return collectBody(this.body(), limitBytes, growing)
  }

  async *body(): AsyncGenerator<Buffer> {
    const { body } = this.#request
    if (body === undefined) return
    if (typeof body === 'string') yield Buffer.from(body)
    else if (Buffer.isBuffer(body)) yield body
    else yield* body
  }

  respond(status: number, headers: HeaderList, body: string | Buffer = ''): void {
    const length = status === 204 || status === 304 ? undefined : body.length
    const head = this.#begin(status, headers, length)
    if (this.#isGivenUp) return
    const content = this.method === 'HEAD' ? '' : body
    this.#answer.resolve(wholeResponse(typeof content === 'string' ? Buffer.from(content, 'latin1') : content, head))
    this.#settle()
  }

  async respondPieces(status: number, headers: HeaderList, { pieces, lengthBytes }: Pieces): Promise<void> {
    const writer = this.#open(this.#begin(status, headers, lengthBytes))
    if (this.method === 'HEAD') writer.end()
    else await sendPieces(writer, pieces)
  }

  stream(status: number, headers: HeaderList): ResponseWriter {
    return this.#open(this.#begin(status, headers, undefined))
  }

  fail(): void {
    if (!this.#isAnswered) this.respond(500, PLAIN_TEXT, INTERNAL_ERROR)
    else if (this.#body?.isEnded === false) this.#body.close(new Error('The answer was broken off'))
  }

  upgrade(): never {
    throw new Error('This exchange has no connection to hand over')
  }

  #begin(status: number, headers: HeaderList, length: number | undefined): ResponseHead {
    this.#isAnswered = true
    const all = [...headers, 'Date', new Date(this.#clock.now()).toUTCString()]
    if (length !== undefined) all.push('Content-Length', String(length))
    return { status, headers: headersOf(all), version: '2' }
  }

  #open(head: ResponseHead): LoopbackWriter {
    const body = new LoopbackBody(BUFFER_BYTES)
    this.#body = body
    body.onClose(() => {
      this.#settle()
      if (!body.isEnded) this.#gone.abort(new Error('The client has gone'))
    })
    this.#answer.resolve(sharedResponse(body, head))
    if (this.#isGivenUp) body.close()
    return new LoopbackWriter(body)
  }

  #giveUp(error: HttpError): void {
    this.#isGivenUp = true
    this.#answer.reject(error)
    if (this.#body !== undefined) return this.#body.close(error)
    this.#settle()
    this.#gone.abort(new Error('The client has gone'))
  }
}

async function readWhole(body: Buffer, limitBytes: number, growing: Growing | undefined): Promise<Buffer> {
  if (body.length > limitBytes) throw bodyTooLarge(limitBytes)
  if (growing !== undefined && body.length > growing.freeBytes) await growing.mayGrow()
  return body
}

class LoopbackWriter implements ResponseWriter {
  readonly sharesFrames = true
  readonly #body: LoopbackBody

  constructor(body: LoopbackBody) {
    this.#body = body
  }

  get isClosed(): boolean {
    return this.#body.isClosed || this.#body.isEnded
  }

  write(piece: Buffer): boolean {
    return this.#body.write(piece)
  }

  writeFrame(frame: SharedFrame): boolean {
    return this.#body.write(frame.body)
  }

  drained(): Promise<void> {
    return this.#body.drained()
  }

  /** Slow readers in the process are not disconnected. */
  bePatient(): void {}

  end(): void {
    this.#body.end()
  }

  abort(): void {
    this.#body.close(new Error('The answer was broken off'))
  }

  onClose(task: () => void): void {
    this.#body.onClose(task)
  }
}
