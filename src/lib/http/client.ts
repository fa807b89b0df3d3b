/**
 * The HTTP client: speaks HTTP/2 or HTTP/1.1, reuses connections and streams responses. It never follows redirects and
 * never uses a proxy.
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { ClientHttp2Stream, IncomingHttpHeaders as Http2Headers } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'

import type { Clock } from '../clock.ts'
import { asSocket } from '../net/as-socket.ts'
import { activeSpan } from '../tracing/active.ts'
import { withHttpSpan } from '../tracing/client-spans.ts'
import { sendBody } from './body.ts'
import type { RequestHead } from './client-http1.ts'
import { DialingAgent, openHttp1, openUpgrade, wasStale } from './client-http1.ts'
import type { PooledSession } from './client-http2.ts'
import { releaseSession, SessionPool } from './client-http2.ts'
import type { ClientTls, Origin } from './dial.ts'
import { dial } from './dial.ts'
import { HttpError } from './http-error.ts'
import { HTTP2_CODES } from './http2-reset.ts'
import { giveUpWith, type Limits, limitRequest, onFail } from './request-limits.ts'
import type { HttpResponse } from './response.ts'
import { createResponse } from './response.ts'

export interface HttpClientOptions {
  readonly clock: Clock
  readonly tls?: ClientTls
  /** Connects to this Unix socket, whatever the URL's host is. */
  readonly socketPath?: string
  /**
   * Resolves a host, and optionally another port, for every new connection; certificates are still checked for the
   * host's name. The request fails with its errors. Default: the system's resolver.
   */
  readonly resolve?: (host: string, port: number) => Promise<string | Address>
  /** How long a connection, TLS included, may take to be made. Default 30 s. */
  readonly connectTimeoutMs?: number
  /**
   * The maximum number of servers with kept connections, least recently used first: a client may be made to call any
   * number.
   */
  readonly maxOrigins?: number
  /** Speak HTTP/1.1 even to servers that know better. */
  readonly http1Only?: boolean
  /**
   * Makes every connection instead of TCP and TLS, for example a stream of a tunnel. URLs are then `http:`, and requests
   * use HTTP/1.1.
   */
  readonly connect?: (signal?: AbortSignal) => Promise<Duplex>
}

/** Where to connect to. */
export interface Address {
  readonly host: string
  readonly port: number
}

export interface HttpRequest {
  readonly method?: string
  /** `http:` or `https:`, with host, path and query. */
  readonly url: string | URL
  /** Path and query exactly as they are to be sent, instead of the URL's, which are normalised. */
  readonly path?: string
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string | Buffer | AsyncIterable<Buffer>
  readonly signal?: AbortSignal
  /** For everything, the last byte of the answer included. None unless given. */
  readonly timeoutMs?: number
}

/** A connection that was handed over, or the answer of a server that did not want to. */
export type UpgradeResult =
  | { readonly isUpgraded: true; readonly headers: IncomingHttpHeaders; readonly socket: Duplex; readonly head: Buffer }
  | { readonly isUpgraded: false; readonly response: HttpResponse }

/** All methods reject with `HttpError`. */
export interface HttpClient {
  /**
   * Resolves when the head of the response has arrived; its body must then be read or discarded. A request on a kept
   * connection that turns out to be closed is retried if it cannot have been served.
   */
  request(request: HttpRequest): Promise<HttpResponse>
  /** Asks to go on with another protocol, named in the `upgrade` header of the request, on a new connection. */
  upgrade(request: Omit<HttpRequest, 'body'>): Promise<UpgradeResult>
  /** Starts the connection for the next request to this server, where each request has a separate one (HTTP/1.1). */
  prepare(url: string): void
  /** New connections use these credentials; kept ones are no longer used. */
  reloadTls(tls: ClientTls): void
  /** Takes no more requests and keeps no connections; what is going on goes on. */
  retire(): void
  /** Ends everything. */
  close(): void
}

const CONNECT_TIMEOUT_MS = 30_000

const MAX_ORIGINS = 1000

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const origins = new Map<string, OriginPool>()
  let tls = options.tls ?? {}
  let isClosed = false
  const poolOf = (url: URL): OriginPool => {
    if (isClosed) throw new HttpError('aborted', 'The client has been closed')
    const pool = origins.get(url.origin) ?? new OriginPool(originOf(url, options.socketPath), { ...options, tls })
    // Those used last are the last.
    origins.delete(url.origin)
    origins.set(url.origin, pool)
    if (origins.size > (options.maxOrigins ?? MAX_ORIGINS)) retireOldest(origins)
    return pool
  }
  const retireAll = (end: (pool: OriginPool) => void): void => {
    for (const pool of origins.values()) end(pool)
    origins.clear()
  }
  return {
    async request(request) {
      const url = new URL(request.url)
      const span = activeSpan()
      if (span === undefined) return sendRequest(poolOf(url), url, request)
      return withHttpSpan(span, { method: request.method ?? 'GET', url }, (headers) =>
        sendRequest(poolOf(url), url, { ...request, headers: { ...request.headers, ...headers } }),
      )
    },
    async upgrade(request) {
      const url = new URL(request.url)
      const headers = { ...request.headers, ...activeSpan()?.headers() }
      return sendUpgrade(poolOf(url), url, { ...request, headers })
    },
    prepare(url) {
      poolOf(new URL(url)).prepare()
    },
    reloadTls(next) {
      tls = next
      retireAll((pool) => pool.retire())
    },
    retire() {
      isClosed = true
      retireAll((pool) => pool.retire())
    },
    close() {
      isClosed = true
      retireAll((pool) => pool.destroy())
    },
  }
}

/** Its running requests go on; nothing new comes to it. */
function retireOldest(origins: Map<string, OriginPool>): void {
  const [oldest] = origins.entries()
  if (oldest === undefined) return
  origins.delete(oldest[0])
  oldest[1].retire()
}

function originOf(url: URL, socketPath: string | undefined): Origin {
  const isSecure = url.protocol === 'https:'
  if (!isSecure && url.protocol !== 'http:') throw new HttpError('connect', `Cannot speak "${url.protocol}"`)
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const port = url.port === '' ? (isSecure ? 443 : 80) : Number(url.port)
  return socketPath === undefined ? { isSecure, host, port } : { isSecure, host, port, socketPath }
}

/** How requests of one origin travel: decided by the first connection, which says what the server speaks. */
class OriginPool {
  readonly origin: Origin
  readonly #options: HttpClientOptions & { readonly tls: ClientTls }
  readonly #sessions: SessionPool
  readonly agent: DialingAgent
  #protocol: 'unknown' | 'http1' | 'http2'
  /** The connection attempt that all waiting requests share. */
  #opening: Promise<void> | undefined

  constructor(origin: Origin, options: HttpClientOptions & { readonly tls: ClientTls }) {
    this.origin = origin
    this.#options = options
    this.#protocol = origin.isSecure && options.http1Only !== true ? 'unknown' : 'http1'
    const host = origin.host.includes(':') ? `[${origin.host}]` : origin.host
    this.#sessions = new SessionPool(`https://${host}:${origin.port}`, options.clock)
    this.agent = new DialingAgent(() => this.dial(['http/1.1']))
  }

  get clock(): Clock {
    return this.#options.clock
  }

  prepare(): void {
    if (this.#protocol === 'http1') this.agent.prepare()
  }

  async dial(alpn: readonly string[], signal?: AbortSignal): Promise<Socket> {
    const { clock, resolve, connect, connectTimeoutMs: timeoutMs = CONNECT_TIMEOUT_MS } = this.#options
    if (connect !== undefined) return asSocket(await connect(signal))
    const { host, port } = this.origin
    const found = resolve === undefined ? host : await resolve(host, port)
    const address = typeof found === 'string' ? { host: found } : found
    const tls = { serverName: host, ...this.#options.tls }
    const options = { clock, tls, timeoutMs, alpn, ...(signal === undefined ? {} : { signal }) }
    return dial({ ...this.origin, ...address }, options)
  }

  /** Room on an HTTP/2 connection, to be released by the caller, or `http1` when the server speaks that. */
  async route(limits: Limits): Promise<PooledSession | 'http1'> {
    for (;;) {
      if (this.#protocol === 'http1') return 'http1'
      const session = this.#sessions.reserve()
      if (session !== undefined) return session
      this.#opening ??= this.#open().finally(() => {
        this.#opening = undefined
      })
      await giveUpWith(limits, this.#opening)
    }
  }

  async #open(): Promise<void> {
    const socket = (await this.dial(['h2', 'http/1.1'])) as TLSSocket
    if (socket.alpnProtocol === 'h2') {
      this.#protocol = 'http2'
      return this.#sessions.add(socket)
    }
    this.#protocol = 'http1'
    this.agent.adopt(socket)
  }

  retire(): void {
    this.#sessions.retire()
    this.agent.retire()
  }

  destroy(): void {
    this.#sessions.destroy()
    this.agent.destroy()
  }
}

/** Kept connections can be closed one after the other; three in a row are no accident any more. */
const MAX_ATTEMPTS = 3

const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])

async function sendRequest(pool: OriginPool, url: URL, request: HttpRequest): Promise<HttpResponse> {
  const limits = limitRequest(pool.clock, request)
  const method = request.method ?? 'GET'
  const head: RequestHead = { method, path: request.path ?? url.pathname + url.search, headers: request.headers ?? {} }
  const isReplayable = request.body === undefined || typeof request.body === 'string' || Buffer.isBuffer(request.body)
  try {
    for (let attempt = 1; ; attempt++) {
      const outcome = await attemptRequest(pool, { head, body: request.body, limits })
      if (!('failed' in outcome)) return outcome
      const again = outcome.isUnserved || (outcome.isStale && REPEATABLE.has(method))
      if (!again || !isReplayable || attempt === MAX_ATTEMPTS || limits.failure !== undefined) throw outcome.failed
    }
  } catch (error) {
    limits.release()
    throw error
  }
}

interface Attempt {
  readonly head: RequestHead
  readonly body: HttpRequest['body']
  readonly limits: Limits
}

/** `isUnserved`: the server did not process it; `isStale`: the kept connection was closed before any answer. */
interface Failure {
  readonly failed: HttpError
  readonly isUnserved: boolean
  readonly isStale: boolean
}

async function attemptRequest(pool: OriginPool, attempt: Attempt): Promise<HttpResponse | Failure> {
  const route = await pool.route(attempt.limits)
  return route === 'http1' ? attemptHttp1(pool, attempt) : attemptHttp2(route, attempt)
}

function attemptHttp1(pool: OriginPool, { head, body, limits }: Attempt): Promise<HttpResponse | Failure> {
  return new Promise((resolve) => {
    const request = openHttp1(pool.origin, head, pool.agent)
    // Node frames no body of a DELETE or GET by default; the server would take it for the next request.
    if (body !== undefined) request.useChunkedEncodingByDefault = true
    onFail(limits, (error) => request.destroy(error))
    request.on('response', (message: IncomingMessage) => {
      resolve(
        responseOf(message, { status: message.statusCode ?? 0, headers: message.headers, version: '1.1' }, limits),
      )
    })
    request.on('error', (error) => {
      resolve({ failed: asHttpError(error), isUnserved: false, isStale: wasStale(request, error) })
    })
    // Node would end the connection without an event.
    request.on('upgrade', (_message, socket) => {
      socket.destroy()
      const failed = asHttpError(new Error('The server switched protocols without being asked'))
      resolve({ failed, isUnserved: false, isStale: false })
    })
    sendBody(request, body)
  })
}

function attemptHttp2(session: PooledSession, { head, body, limits }: Attempt): Promise<HttpResponse | Failure> {
  return new Promise((resolve) => {
    const stream = openHttp2(session, { ...head, headers: { ...head.headers, ...lengthOf(body) } }, body === undefined)
    if (stream instanceof HttpError) return resolve({ failed: stream, isUnserved: true, isStale: false })
    let failure: Error | undefined
    onFail(limits, (error) => {
      failure = error
      stream.destroy(error)
    })
    stream.on('response', (headers: Http2Headers & { ':status'?: number }) => {
      // Explicit, because node otherwise discards data that arrives before the first reader.
      stream.pause()
      resolve(responseOf(stream, { status: headers[':status'] ?? 0, headers, version: '2' }, limits))
    })
    stream.on('error', (error) => {
      failure ??= error
    })
    stream.on('close', () => {
      releaseSession(session)
      const isUnserved = stream.rstCode === HTTP2_CODES.refusedStream
      const failed = asHttpError(failure ?? new Error('The connection was lost before there was an answer'))
      // Without effect when there was an answer.
      resolve({ failed, isUnserved, isStale: stream.session?.destroyed !== false })
    })
    if (body !== undefined) sendBody(stream, body)
  })
}

function openHttp2(session: PooledSession, head: RequestHead, endStream: boolean): ClientHttp2Stream | HttpError {
  try {
    return session.http2.request({ ...head.headers, ':method': head.method, ':path': head.path }, { endStream })
  } catch (cause) {
    releaseSession(session)
    return new HttpError('broken', 'The connection was lost before the request was sent', { cause })
  }
}

/** Implied by HTTP/1.1; without it a server has to reserve memory for its largest body. */
function lengthOf(body: HttpRequest['body']): { readonly 'content-length'?: string } {
  return typeof body === 'string' || Buffer.isBuffer(body) ? { 'content-length': String(Buffer.byteLength(body)) } : {}
}

function responseOf(
  source: Readable,
  head: { status: number; headers: IncomingHttpHeaders; version: '1.1' | '2' },
  limits: Limits,
): HttpResponse {
  onFail(limits, (error) => source.destroy(error))
  source.once('close', () => limits.release())
  return createResponse(source, head)
}

async function sendUpgrade(pool: OriginPool, url: URL, request: Omit<HttpRequest, 'body'>): Promise<UpgradeResult> {
  const limits = limitRequest(pool.clock, request)
  try {
    const socket = await giveUpWith(limits, pool.dial(['http/1.1'], request.signal))
    const headers = { connection: 'Upgrade', ...request.headers }
    const head = { method: request.method ?? 'GET', path: request.path ?? url.pathname + url.search, headers }
    return await awaitUpgrade(openUpgrade(pool.origin, head, socket), limits)
  } catch (error) {
    limits.release()
    throw error
  }
}

function awaitUpgrade(request: ClientRequest, limits: Limits): Promise<UpgradeResult> {
  return new Promise((resolve, reject) => {
    onFail(limits, (error) => request.destroy(error))
    request.on('upgrade', (message, socket, head) => {
      // From here on the connection is the caller's, and so is the time it takes.
      limits.release()
      socket.on('error', () => undefined)
      resolve({ isUpgraded: true, headers: message.headers, socket, head })
    })
    request.on('response', (message) => {
      const { socket } = message
      const response = responseOf(
        message,
        { status: message.statusCode ?? 0, headers: message.headers, version: '1.1' },
        limits,
      )
      // It belongs to no pool, and its `Connection` header makes node:http believe that it will be reused.
      message.once('close', () => socket.destroy())
      resolve({ isUpgraded: false, response })
    })
    request.on('error', (error) => reject(asHttpError(error)))
    request.end()
  })
}

function asHttpError(error: Error): HttpError {
  return error instanceof HttpError
    ? error
    : new HttpError('broken', `The request failed: ${error.message}`, { cause: error })
}
