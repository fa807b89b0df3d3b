/**
 * The HTTP server: one listener; TLS; HTTP/1.1 or HTTP/2 as the client prefers (ALPN); one kind of exchange for both.
 * Sockets are accepted here and handed to node:http and node:http2, which never listen themselves.
 */
import type { IncomingMessage, Server as Http1Server, ServerResponse } from 'node:http'
import type { Http2Server, Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'

import { type Clock, every, type Timer } from '../clock.ts'
import type { Connection } from './connection.ts'
import { Admission, createConnection } from './connection.ts'
import { Http1Exchange } from './exchange-http1.ts'
import { Http2Exchange } from './exchange-http2.ts'
import type { Exchange } from './exchange.ts'
import { HTTP2_CODES, resetStream } from './http2-reset.ts'
import type { BoundAddress, ListenAddress, Listener } from './listen.ts'
import { bind } from './listen.ts'
import { http } from './node-http.ts'
import { PeerChains, readAuthorities } from './peer-chains.ts'
import type { HttpLimits, ServerContext } from './server-context.ts'
import { createServerContext, DEFAULT_LIMITS } from './server-context.ts'
import { type Sending, Stalls } from './stalls.ts'
import type { ServerTls, TlsServer } from './tls.ts'
import { createTlsServer } from './tls.ts'

export interface HttpServerOptions {
  /** Handles an exchange. Its errors go to `onError`; the client gets 500, or a broken connection. */
  readonly serve: (exchange: Exchange) => void | Promise<void>
  readonly clock: Clock
  /** Without it the server speaks plain HTTP/1.1: for health ports, tests and unix sockets. */
  readonly tls?: ServerTls
  readonly limits?: Partial<HttpLimits>
  /** Protocols (lower case) for upgrades, such as `websocket`; other upgrade requests are served normally. */
  readonly upgrades?: readonly string[]
  /** Let HTTP/2 clients upgrade too (RFC 8441). */
  readonly extendedConnect?: boolean
  readonly onError?: (error: unknown, exchange: Exchange) => void
  /** Called for each connection that ended before its TLS handshake. */
  readonly onHandshakeError?: () => void
}

export interface HttpServer {
  listen(address: ListenAddress): Promise<BoundAddress>
  /** Serves connections of a port that was bound before. It is closed with this server. */
  accept(listener: Listener): void
  /** Changes certificates and client authorities for new connections. Throws, changing nothing, if they are unusable. */
  reloadTls(tls: ServerTls): void
  /**
   * Stops accepting, asks clients to reconnect elsewhere (GOAWAY, Connection: close), ends idle connections a moment
   * later, and waits for running exchanges; those that are not complete after `graceMs` are aborted. `draining` is
   * aborted at the start, so that writers can end streaming responses.
   */
  drain(graceMs: number): Promise<void>
  readonly draining: AbortSignal
  /** Open connections, those in their handshake included. */
  readonly connections: number
}

/** The number of streams of a connection that are served at once, and of further ones per turn. */
const AT_ONCE = 16

/** How long clients that have nothing under way may still send a request, once the server is to stop. */
const LINGER_MS = 2000

/** In GOAWAY: everything that was sent is still answered. */
const EVERY_STREAM = 2 ** 31 - 1

/** How often node:http looks for requests that are too slow. */
const SLOW_CHECK_MS = 5000

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const state = createState(options)
  const http1 = createHttp1(state)
  const tls = options.tls === undefined ? undefined : createSecure(state, options.tls, http1, options.onHandshakeError)
  const take = (socket: Socket): void => {
    if (!state.admission.admit(socket)) return
    if (tls === undefined) acceptHttp1(state, http1, socket)
    else tls.server.emit('connection', socket)
  }
  const listeners: Listener[] = []
  let sweeping: Timer | undefined
  const accept = (listener: Listener): void => {
    sweeping ??= sweepOften(state)
    listeners.push(listener)
    listener.accept(take)
  }
  return {
    accept,
    async listen(address) {
      const listener = await bind(address)
      accept(listener)
      return listener.address
    },
    reloadTls(material) {
      if (tls === undefined) throw new Error('This server has no TLS to reload')
      // Read first: a reload that fails changes nothing.
      const authorities = readAuthorities(material.clientAuthorities)
      tls.reload(material)
      state.chains.setAuthorities(authorities)
    },
    async drain(graceMs) {
      for (const listener of listeners) listener.close()
      startDrain(state)
      const lingering = options.clock.after(Math.min(LINGER_MS, graceMs / 20), () => endIdle(state))
      const timer = options.clock.after(graceMs, () => state.admission.destroyAll())
      await state.admission.emptied()
      timer.cancel()
      lingering.cancel()
      sweeping?.cancel()
      http1.close()
    },
    draining: state.draining.signal,
    get connections() {
      return state.admission.size
    },
  }
}

interface State {
  readonly options: HttpServerOptions
  readonly limits: HttpLimits
  readonly context: ServerContext
  readonly admission: Admission
  readonly chains: PeerChains
  readonly draining: AbortController
  /** Streams that wait for a later turn; see `serveLater`. */
  readonly later: (() => void)[]
  /** The last phase of draining: idle connections are ended. */
  isEnding: boolean
  /** Established connections by what identifies them where they are needed: their socket or their session. */
  readonly bySocket: Map<Socket, Connection>
  readonly bySession: WeakMap<Http2Session, Connection>
}

function createState(options: HttpServerOptions): State {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const draining = new AbortController()
  const context = createServerContext(options.clock, limits, {
    get isDraining() {
      return draining.signal.aborted
    },
  })
  const admission = new Admission(limits)
  return {
    options,
    limits,
    context,
    admission,
    chains: new PeerChains(),
    draining,
    later: [],
    isEnding: false,
    bySocket: new Map(),
    bySession: new WeakMap(),
  }
}

function track(state: State, socket: Socket): Connection {
  const connection = createConnection(socket, state.chains)
  state.bySocket.set(socket, connection)
  socket.on('error', () => undefined)
  socket.on('close', () => state.bySocket.delete(socket))
  return connection
}

function createSecure(state: State, material: ServerTls, http1: Http1Server, onHandshakeError?: () => void): TlsServer {
  const tls = createTlsServer(material, state.limits.handshakeTimeoutMs, onHandshakeError)
  state.chains.setAuthorities(readAuthorities(material.clientAuthorities))
  let http2: Http2Server | undefined
  tls.server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') acceptHttp2(state, (http2 ??= createHttp2(state)), socket)
    else acceptHttp1(state, http1, socket)
  })
  return tls
}

function createHttp1(state: State): Http1Server {
  const { limits, options } = state
  const upgrades = new Set(options.upgrades)
  const server = http.createServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.idleTimeoutMs,
    connectionsCheckingInterval: Math.min(SLOW_CHECK_MS, limits.headersTimeoutMs),
    shouldUpgradeCallback: (request) => upgrades.has(request.headers.upgrade?.toLowerCase() ?? ''),
  })
  server.on('request', (request, response) => onRequest(state, request, response))
  server.on('upgrade', (request, socket, head) => onUpgrade(state, request, { socket, head }))
  // Sockets are handed over, so it never listens; but only this event starts its watch over slow requests.
  server.emit('listening')
  return server
}

function createHttp2(state: State): Http2Server {
  const { limits, options } = state
  const server = process.getBuiltinModule('node:http2').createServer({
    settings: {
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
      enableConnectProtocol: options.extendedConnect === true,
      // Bodies may be some MiB; 64 KiB of window would make each wait for many round trips.
      initialWindowSize: 256 << 10,
    },
    // As for HTTP/1.1; the default of 128 refuses users with many groups. Their bytes are limited above.
    maxHeaderListPairs: 2000,
    streamResetBurst: limits.streamResetBurst,
    streamResetRate: limits.streamResetRate,
    // MB. By default a client with ten of them on their way to it is refused further streams (ENHANCE_YOUR_CALM); how much
    // may wait to be sent is bounded by its writer.
    maxSessionMemory: 1000,
  })
  // No 'request' listener, ever: it would build compatibility objects for every stream.
  server.on(
    'stream',
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: string[]) => {
      onStream(state, stream, { headers, rawHeaders })
    },
  )
  return server
}

function acceptHttp1(state: State, server: Http1Server, socket: Socket): void {
  track(state, socket)
  if (state.isEnding) socket.destroy()
  else server.emit('connection', socket)
}

function acceptHttp2(state: State, server: Http2Server, socket: TLSSocket): void {
  const connection = track(state, socket)
  server.once('session', (session) => {
    connection.session = session
    state.bySession.set(session, connection)
    session.on('error', () => undefined)
    session.setTimeout(state.limits.idleTimeoutMs, () => {
      if (connection.active === 0) session.close()
    })
    if (state.isEnding) session.close()
    else if (state.context.isDraining) session.goaway(HTTP2_CODES.noError, EVERY_STREAM)
  })
  // Makes the session, and with it the event above, before it returns.
  server.emit('connection', socket)
}

function onRequest(state: State, request: IncomingMessage, response: ServerResponse): void {
  const connection = state.bySocket.get(request.socket)
  if (connection === undefined) return void request.socket.destroy()
  if (hasManyHosts(request)) {
    response.writeHead(400, { 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' })
    return void response.end('400 Bad Request: too many Host headers')
  }
  begin(state, connection, response)
  run(state, Http1Exchange.of(request, response, { connection, context: state.context }))
}

/** Node takes the first; another server on the way may have taken the second. */
function hasManyHosts({ rawHeaders }: IncomingMessage): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  return hosts > 1
}

function onUpgrade(state: State, request: IncomingMessage, raw: { socket: Duplex; head: Buffer }): void {
  const connection = state.bySocket.get(request.socket)
  if (connection === undefined || hasManyHosts(request)) return void request.socket.destroy()
  begin(state, connection, raw.socket)
  run(state, Http1Exchange.ofUpgrade(request, raw, { connection, context: state.context }))
}

function onStream(
  state: State,
  stream: ServerHttp2Stream,
  head: { headers: IncomingHttpHeaders; rawHeaders: string[] },
): void {
  stream.on('error', () => undefined)
  const connection = stream.session === undefined ? undefined : state.bySession.get(stream.session)
  if (connection === undefined) return stream.close()
  begin(state, connection, stream)
  const link = connection.streams.add(stream)
  stream.on('close', () => {
    link.remove()
    if (stream.aborted) countReset(state, connection)
  })
  const serve = (): void => {
    const exchange = new Http2Exchange(stream, head, { connection, context: state.context })
    const isRefused = exchange.method === 'CONNECT' && exchange.upgradeProtocol === undefined
    if (isRefused) exchange.respond(405, [])
    else run(state, exchange)
  }
  if (isAtOnce(connection)) return serve()
  state.later.push(() => {
    if (!stream.closed && !stream.destroyed) serve()
  })
  if (state.later.length === 1) setImmediate(() => serveLater(state))
}

function isAtOnce(connection: Connection): boolean {
  if (connection.openedNow === 0) setImmediate(() => (connection.openedNow = 0))
  return ++connection.openedNow <= AT_ONCE
}

/**
 * A client that opens many streams at once gets a few responses per turn of the event loop, so that others are served
 * in between. Streams that were reset meanwhile are skipped.
 */
function serveLater(state: State): void {
  for (const serve of state.later.splice(0, AT_ONCE)) serve()
  if (state.later.length > 0) setImmediate(() => serveLater(state))
}

/** node:http2 counts resets too, but closes the connection only when it next gets to write. */
function countReset({ limits, options }: State, connection: Connection): void {
  const nowMs = options.clock.elapsed()
  const forgiven = ((nowMs - connection.resetMs) / 1000) * limits.streamResetRate
  connection.resets = Math.max(0, connection.resets - forgiven) + 1
  connection.resetMs = nowMs
  if (connection.resets <= limits.streamResetBurst) return
  connection.session?.goaway(HTTP2_CODES.enhanceYourCalm)
  setImmediate(() => connection.socket.destroy())
}

/** Counts an exchange until `until` closes; the last one of a connection that is to go takes it along. */
function begin(state: State, connection: Connection, until: { on(event: 'close', task: () => void): unknown }): void {
  connection.active++
  until.on('close', () => {
    connection.active--
    // Until then a client that has not received `Connection: close` may be sending its next request.
    if (state.isEnding && connection.active === 0 && connection.session === undefined) {
      connection.socket.destroySoon()
    }
  })
}

function run(state: State, exchange: Exchange): void {
  const fail = (error: unknown): void => {
    state.options.onError?.(error, exchange)
    exchange.fail()
  }
  try {
    // Most exchanges are answered at once; those that are not bring their own promise.
    const serving = state.options.serve(exchange)
    if (serving !== undefined) serving.catch(fail)
  } catch (error) {
    fail(error)
  }
}

/**
 * Clients must reconnect elsewhere, but every request that they have sent gets a response. HTTP/2 signals this with
 * GOAWAY, HTTP/1.1 with a header of the next response.
 */
function startDrain(state: State): void {
  state.draining.abort(new Error('The server is stopping'))
  for (const { session, socket } of state.bySocket.values()) {
    if (session?.destroyed === true) socket.destroy()
    else session?.goaway(HTTP2_CODES.noError, EVERY_STREAM)
  }
}

function endIdle(state: State): void {
  state.isEnding = true
  for (const { session, socket, active } of state.bySocket.values()) {
    if (session !== undefined) session.close()
    else if (active === 0) socket.destroySoon()
  }
}

/** Cuts off clients that do not read, and connections that nothing else would ever end. */
function sweepOften({ bySocket, limits, options: { clock } }: State): Timer {
  const stalls = new Stalls(limits.stallTimeoutMs)
  return every(clock, Math.min(SLOW_CHECK_MS, limits.stallTimeoutMs / 2), () => {
    const nowMs = clock.elapsed()
    for (const connection of bySocket.values()) sweep(connection, (sending) => stalls.isStalled(sending, nowMs))
  })
}

function sweep({ socket, session, streams }: Connection, isStalled: (sending: Sending) => boolean): void {
  // A session that failed waits for its last bytes to be taken before it closes its socket: for ever, if need be.
  if (session?.destroyed === true || isStalled(socket)) return void socket.destroy()
  for (const stream of streams) if (isStalled(stream)) resetStream(stream, HTTP2_CODES.cancel)
}
