/**
 * A gRPC server on node:http2 for a handful of local clients (plugins, runtimes, tests) and for mTLS peers. Handlers
 * are functions of requests; a stream of answers is an async iterable, written only as fast as the peer reads.
 */
import type {
  Http2SecureServer,
  Http2Server,
  IncomingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2'
import { createSecureServer, createServer } from 'node:http2'

import type { Clock } from '../clock.ts'
import type { BoundAddress, ListenAddress } from '../http/listen.ts'
import { listen } from '../http/listen.ts'
import { Ending } from './ending.ts'
import { encodeFrame } from './frame.ts'
import type { Method } from './method.ts'
import { checkEncoding, isGrpcContentType, MAX_RECEIVE_BYTES, metadataHeaders } from './method.ts'
import type { CallContext, ServerCall } from './server-call.ts'
import { openServerCall, refuse } from './server-call.ts'
import { GrpcError } from './status.ts'

/** A method and what serves it. Make one with `handleUnary`, `handleServerStream` or `handleBidi`. */
export interface Handler {
  readonly path: string
  serve(call: ServerCall, context: CallContext): Promise<void>
}

export function handleUnary<Q, QIn, R, RIn>(
  method: Method<Q, QIn, R, RIn>,
  handle: (request: Q, context: CallContext) => RIn | Promise<RIn>,
): Handler {
  return {
    path: method.path,
    async serve(call, context) {
      const answer = await handle(method.request.decode(await call.only()), context)
      call.finish(encodeFrame(method.response.encode(answer)), metadataHeaders(context.trailers))
    },
  }
}

/** One request, many answers. */
export function handleServerStream<Q, QIn, R, RIn>(
  method: Method<Q, QIn, R, RIn>,
  handle: (request: Q, context: CallContext) => AsyncIterable<RIn>,
): Handler {
  return {
    path: method.path,
    async serve(call, context) {
      await sendAll(method, handle(method.request.decode(await call.only()), context), { call, context })
    },
  }
}

/** Requests and answers independently of each other; also for many requests with one answer. */
export function handleBidi<Q, QIn, R, RIn>(
  method: Method<Q, QIn, R, RIn>,
  handle: (requests: AsyncIterable<Q>, context: CallContext) => AsyncIterable<RIn>,
): Handler {
  return {
    path: method.path,
    async serve(call, context) {
      const requests = decodeAll(method, call)
      await sendAll(method, handle(requests, context), { call, context })
    },
  }
}

async function* decodeAll<Q, QIn, R, RIn>(method: Method<Q, QIn, R, RIn>, call: ServerCall): AsyncGenerator<Q> {
  for await (const message of call.messages()) yield method.request.decode(message)
}

async function sendAll<Q, QIn, R, RIn>(
  method: Method<Q, QIn, R, RIn>,
  answers: AsyncIterable<RIn>,
  { call, context }: { call: ServerCall; context: CallContext },
): Promise<void> {
  for await (const answer of answers) {
    // Leaving the loop, here by an error of `send`, is what tells the handler's generator to clean up.
    await call.send(encodeFrame(method.response.encode(answer)))
  }
  call.finish(undefined, metadataHeaders(context.trailers))
}

export interface ServerTls {
  readonly certificate: string
  readonly key: string
  /** Authorities whose client certificates are accepted; when given, a client must show one. */
  readonly clientCa?: string
}

export interface GrpcServerOptions {
  readonly handlers: readonly Handler[]
  readonly clock: Clock
  /** Larger requests fail the call as `resourceExhausted`. Default 16 MiB. */
  readonly maxReceiveBytes?: number
  readonly tls?: ServerTls
  /** Receives errors of handlers that are not a `GrpcError`; the caller sees `unknown` and the message. */
  readonly onError?: (error: unknown, path: string) => void
}

export interface GrpcServer {
  listen(address: ListenAddress): Promise<BoundAddress>
  /** Takes no new calls, waits for open ones until `graceMs` have passed, then ends them as `unavailable`. */
  stop(graceMs?: number): Promise<void>
}

/** A client that opens more than this at once waits. */
const MAX_CONCURRENT_STREAMS = 1000

export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const handlers = new Map(options.handlers.map((handler) => [handler.path, handler]))
  const services = new Set([...handlers.keys()].map(serviceOf))
  const sessions = new Set<ServerHttp2Session>()
  const stopping = new Ending()
  let isStopping = false
  const server = makeServer(options)
  server.on('session', (session) => {
    sessions.add(session)
    session.on('close', () => sessions.delete(session))
    // A broken connection ends its calls; there is no peer to notify.
    session.on('error', () => undefined)
    if (isStopping) session.close()
  })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => undefined)
    const path = headers[':path'] ?? ''
    if (headers[':method'] !== 'POST' || !isGrpcContentType(headers['content-type'])) {
      stream.respond({ ':status': headers[':method'] === 'POST' ? 415 : 405 }, { endStream: true })
      return
    }
    const handler = handlers.get(path)
    if (handler === undefined) return refuse(stream, unknownMethod(path, services))
    void serveCall(stream, headers, { handler, options, stopping })
  })
  return {
    listen: (address) => listen(server, address),
    stop(graceMs = 10_000) {
      isStopping = true
      return stopServer(server, { sessions, stopping, clock: options.clock, graceMs })
    },
  }
}

function makeServer({ tls }: GrpcServerOptions): Http2Server | Http2SecureServer {
  const settings = { maxConcurrentStreams: MAX_CONCURRENT_STREAMS, initialWindowSize: 1 << 20 }
  if (tls === undefined) return createServer({ settings })
  return createSecureServer({
    settings,
    cert: tls.certificate,
    key: tls.key,
    minVersion: 'TLSv1.2',
    ...(tls.clientCa === undefined ? {} : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: true }),
  })
}

function serviceOf(path: string): string {
  return path.slice(1, path.lastIndexOf('/'))
}

/** As grpc-go words it. */
function unknownMethod(path: string, services: ReadonlySet<string>): GrpcError {
  const service = serviceOf(path)
  const method = path.slice(path.lastIndexOf('/') + 1)
  const text = services.has(service) ? `unknown method ${method} for service ${service}` : `unknown service ${service}`
  return new GrpcError('unimplemented', text)
}

interface ServeOptions {
  readonly handler: Handler
  readonly options: GrpcServerOptions
  readonly stopping: Ending
}

async function serveCall(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, serve: ServeOptions): Promise<void> {
  const { handler, options, stopping } = serve
  let call: ServerCall | undefined
  try {
    checkEncoding(headers)
    call = openServerCall(stream, headers, {
      clock: options.clock,
      stopping,
      maxReceiveBytes: options.maxReceiveBytes ?? MAX_RECEIVE_BYTES,
    })
    await handler.serve(call, call.context)
  } catch (error) {
    // After an external end, errors of the handler are consequences of it.
    const status = call?.ending.error ?? asStatus(error)
    if (status.cause === error) options.onError?.(error, handler.path)
    if (call === undefined) refuse(stream, status)
    else call.fail(status)
  }
}

function asStatus(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error
  return new GrpcError('unknown', error instanceof Error ? error.message : String(error), { cause: error })
}

interface Stopping {
  readonly sessions: ReadonlySet<ServerHttp2Session>
  readonly stopping: Ending
  readonly clock: Clock
  readonly graceMs: number
}

async function stopServer(
  server: Http2Server | Http2SecureServer,
  { sessions, stopping, clock, graceMs }: Stopping,
): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  for (const session of sessions) session.close()
  const timer = clock.after(graceMs, () => {
    stopping.end(new GrpcError('unavailable', 'The server is stopping'))
    // One turn, in which the status of the ended calls is sent.
    setImmediate(() => {
      for (const session of sessions) session.destroy()
    })
  })
  await closed
  timer.cancel()
}
