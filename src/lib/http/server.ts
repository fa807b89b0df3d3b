/**
 * The HTTP server: one listener; TLS; HTTP/1.1 or HTTP/2 as the client prefers (ALPN); one kind of exchange for both.
 * Sockets are accepted here and handed to node:http and node:http2, which never listen themselves.
 */
import type { IncomingMessage, Server as Http1Server, ServerResponse } from 'node:http'
import type { Http2Server, Http2Session, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { createServer as createHttp2Server } from 'node:http2'
import type { Socket } from 'node:net'
import { createServer as createNetServer } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'

import type { Clock } from '../clock.ts'
import type { Connection } from './connection.ts'
import { Admission, createConnection } from './connection.ts'
import { Http1Exchange } from './exchange-http1.ts'
import { Http2Exchange } from './exchange-http2.ts'
import type { Exchange } from './exchange.ts'
import type { BoundAddress, ListenAddress } from './listen.ts'
import { listen } from './listen.ts'
import { http } from './node-http.ts'
import type { HttpLimits, ServerContext } from './server-context.ts'
import { createServerContext, DEFAULT_LIMITS } from './server-context.ts'
import type { ServerTls, TlsServer } from './tls.ts'
import { createTlsServer } from './tls.ts'

export interface HttpServerOptions {
  /** Answers an exchange. What it throws goes to `onError`; the client gets 500, or a broken connection. */
  readonly serve: (exchange: Exchange) => void | Promise<void>
  readonly clock: Clock
  /** Without it the server speaks plain HTTP/1.1: for health ports, tests and unix sockets. */
  readonly tls?: ServerTls
  readonly limits?: Partial<HttpLimits>
  /** Protocols (lower case) an exchange may be upgraded to, such as `websocket`; others are served as if not asked for. */
  readonly upgrades?: readonly string[]
  /** Let HTTP/2 clients upgrade too (RFC 8441). */
  readonly extendedConnect?: boolean
  readonly onError?: (error: unknown, exchange: Exchange) => void
}

export interface HttpServer {
  listen(address: ListenAddress): Promise<BoundAddress>
  /** Changes certificates and client authorities for new connections. Throws, changing nothing, if they are unusable. */
  reloadTls(tls: ServerTls): void
  /**
   * Accepts no more, asks clients to go elsewhere (GOAWAY, Connection: close), ends idle connections, and waits for
   * running exchanges; those that are not complete after `graceMs` are cut off. `draining` is aborted at the start, so
   * that answers without end can be ended by who writes them.
   */
  drain(graceMs: number): Promise<void>
  readonly draining: AbortSignal
  /** Open connections, those in their handshake included. */
  readonly connections: number
}

/** Dead peers are noticed by TCP after this and a few probes. */
const TCP_KEEPALIVE_MS = 30_000

/** How often node:http looks for requests that are too slow. */
const SLOW_CHECK_MS = 5000

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const state = createState(options)
  const http1 = createHttp1(state)
  const tls = options.tls === undefined ? undefined : createSecure(state, options.tls, http1)
  const listener = createNetServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: TCP_KEEPALIVE_MS })
  listener.on('connection', (socket) => {
    if (!state.admission.admit(socket)) return
    if (tls === undefined) acceptHttp1(state, http1, socket)
    else tls.server.emit('connection', socket)
  })
  return {
    listen: (address) => listen(listener, address),
    reloadTls(material) {
      if (tls === undefined) throw new Error('This server has no TLS to reload')
      tls.reload(material)
    },
    async drain(graceMs) {
      if (listener.listening) listener.close()
      startDrain(state)
      const timer = options.clock.after(graceMs, () => state.admission.destroyAll())
      await state.admission.emptied()
      timer.cancel()
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
  readonly draining: AbortController
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
  return { options, limits, context, admission, draining, bySocket: new Map(), bySession: new WeakMap() }
}

function track(state: State, socket: Socket): Connection {
  const connection = createConnection(socket)
  state.bySocket.set(socket, connection)
  socket.on('error', () => undefined)
  socket.on('close', () => state.bySocket.delete(socket))
  return connection
}

function createSecure(state: State, material: ServerTls, http1: Http1Server): TlsServer {
  const tls = createTlsServer(material, state.limits.handshakeTimeoutMs)
  const http2 = createHttp2(state)
  tls.server.on('secureConnection', (socket: TLSSocket) => {
    if (socket.alpnProtocol === 'h2') acceptHttp2(state, http2, socket)
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
  const server = createHttp2Server({
    settings: {
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
      enableConnectProtocol: options.extendedConnect === true,
      // Bodies may be some MiB; 64 KiB of window would make each wait for many round trips.
      initialWindowSize: 256 << 10,
    },
    streamResetBurst: limits.streamResetBurst,
    streamResetRate: limits.streamResetRate,
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
  if (state.context.isDraining) socket.destroy()
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
    if (state.context.isDraining) session.close()
  })
  // Makes the session, and with it the event above, before it returns.
  server.emit('connection', socket)
}

function onRequest(state: State, request: IncomingMessage, response: ServerResponse): void {
  const connection = state.bySocket.get(request.socket)
  if (connection === undefined) return void request.socket.destroy()
  begin(state, connection, response)
  run(state, Http1Exchange.of(request, response, { connection, context: state.context }))
}

function onUpgrade(state: State, request: IncomingMessage, raw: { socket: Duplex; head: Buffer }): void {
  const connection = state.bySocket.get(request.socket)
  if (connection === undefined) return void request.socket.destroy()
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
  const exchange = new Http2Exchange(stream, head, { connection, context: state.context })
  const isRefused = exchange.method === 'CONNECT' && exchange.upgradeProtocol === undefined
  if (isRefused) exchange.respond(405, [])
  else run(state, exchange)
}

/** Counts an exchange until `until` closes; the last one of a connection that is to go takes it along. */
function begin(state: State, connection: Connection, until: { on(event: 'close', task: () => void): unknown }): void {
  connection.active++
  until.on('close', () => {
    connection.active--
    if (state.context.isDraining && connection.active === 0 && connection.session === undefined) {
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

function startDrain(state: State): void {
  state.draining.abort(new Error('The server is stopping'))
  for (const connection of state.bySocket.values()) {
    if (connection.session !== undefined) connection.session.close()
    else if (connection.active === 0) connection.socket.destroySoon()
  }
}
