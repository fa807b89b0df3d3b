/**
 * The API server: exchanges in, answers out. Each request passes the same steps in the same order: what is it about,
 * who asks, may they, then its route. Everything that can go wrong becomes a Status in the form the client accepts.
 */
import type { Clock } from '#lib/clock.ts'
import { BodyError, type Exchange, type HeaderList } from '#lib/http/exchange.ts'
import { type Random, uuid } from '#lib/random.ts'
import { MEDIA_TYPES, isRefusal, negotiateAccept } from '#meta/codec/negotiate.ts'
import { durationMs } from '#meta/duration.ts'
import {
  badRequestError,
  failure,
  internalError,
  requestEntityTooLargeError,
  unauthorizedError,
} from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'

import { forbiddenAccess } from './authorizers/authorizer.ts'
import { type Answer, type AnswerStream, type Call, isStream, type WholeAnswer } from './call.ts'
import type { Cors } from './cors.ts'
import { createDeadlines, type Deadlines } from './deadlines.ts'
import { anonymous, type Authenticate, authenticated, type Authorize } from './filters.ts'
import type { Impersonate } from './impersonation.ts'
import { type Inflight, isLongRunning } from './inflight.ts'
import type { User } from './registry/resource.ts'
import type { Representation } from './representation.ts'
import { type RequestInfo, requestInfoOf } from './request-info.ts'
import type { ObserveRequest } from './request-metrics.ts'
import { warningHeaders } from './warnings.ts'

/** A path that is no resource: health, version, discovery. Undefined: not ours. */
export type Route = (call: Call) => Promise<Answer> | Answer | undefined

/** What requests pass besides the two questions; each may be absent. */
export interface FilterOptions {
  readonly inflight?: Inflight
  readonly cors?: Cors
  /** `--request-timeout`; a watch ends by its own rules. */
  readonly requestTimeoutMs?: number
  /** `--anonymous-auth`; false: who shows no credentials is turned away. */
  readonly allowsAnonymous?: boolean
  /** Headers of every answer. */
  readonly fixedHeaders?: HeaderList
}

export interface ApiServerOptions extends FilterOptions {
  readonly clock: Clock
  readonly random: Random
  readonly authenticate: Authenticate
  /** Whom a request counts as; default: whoever asks. */
  readonly impersonate?: Impersonate
  readonly authorize: Authorize
  /** Resources. */
  readonly dispatch: (call: Call) => Promise<Answer>
  /** Whether the group version is known at all: others are not a Status but plain text. */
  readonly knowsGroup: (group: string) => boolean
  readonly routes: Route
  /** Encodes a Status in what the client accepts. */
  readonly encoder: Pick<Representation, 'value'>
  readonly onError?: (error: unknown, info: RequestInfo) => void
  /** Headers of every answer: which flow schema and priority level it belonged to. */
  readonly flowHeaders?: (user: User, info: RequestInfo) => HeaderList
  readonly observe?: ObserveRequest
  /** Aborted when the server stops: answers without end are ended then. */
  readonly draining?: AbortSignal
}

/** The largest body upstream takes. */
const MAX_BODY_BYTES = 3 * 1024 * 1024

/** How long a request may take; a watch ends by its own rules. */
const REQUEST_TIMEOUT_MS = 60_000

export function createApiServer(options: ApiServerOptions): (exchange: Exchange) => Promise<void> {
  const streams = createStreams(options.draining)
  const deadlines = createDeadlines(options.clock, options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS)
  return async (exchange) => {
    const cross = options.cors?.(exchange)
    if (cross !== undefined && exchange.method === 'OPTIONS') return exchange.respond(204, cross)
    const request = readRequest(exchange)
    const observation = options.observe?.(observed(exchange, request))
    const context: AnswerContext = {
      auditId: auditIdOf(exchange, options.random),
      warnings: [],
      headers: [...(options.fixedHeaders ?? []), ...(cross ?? [])],
      streams,
      deadlines,
      limitMs: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
    }
    let code = 500
    let bytes: number | undefined
    try {
      const answer = await answerTo(options, exchange, { request, context })
      ;({ status: code } = answer)
      bytes = lengthOf(answer)
      await send(exchange, answer, context)
    } finally {
      observation?.end(code, bytes)
    }
  }
}

interface Progress {
  readonly request: Request
  readonly context: AnswerContext
}

/** Never throws: what goes wrong is an answer too. A place among the running requests is held until there is one. */
async function answerTo(
  options: ApiServerOptions,
  exchange: Exchange,
  { request, context }: Progress,
): Promise<Answer> {
  const { info } = request
  let user = anonymous
  let leave: (() => void) | undefined
  try {
    user = await identify(options, exchange)
    if (options.impersonate !== undefined) user = await options.impersonate(user, info, exchange)
    leave = options.inflight?.enter(user, info)
    if (leave === undefined && options.inflight !== undefined) return tooManyRequests()
    const decision = await options.authorize(user, info)
    if (!decision.allowed) throw forbiddenAccess(user, info, decision.reason)
    const call = createCall({ exchange, request, user, warnings: context.warnings })
    return await withDeadline(context, request, () => route(options, call))
  } catch (error) {
    const status = asStatus(error)
    if (error !== status && status.status.code === 500) options.onError?.(error, info)
    return errorAnswer(options, exchange, status)
  } finally {
    leave?.()
    context.headers.push(...(options.flowHeaders?.(user, info) ?? []))
  }
}

/** Upstream's own words, as plain text: no Status is made when there is no time for anything. */
function tooManyRequests(): WholeAnswer {
  return {
    status: 429,
    contentType: 'text/plain; charset=utf-8',
    body: 'Too many requests, please try again later.\n',
    headers: { 'Retry-After': '1', 'X-Content-Type-Options': 'nosniff' },
  }
}

function observed({ method, headers }: Exchange, { info, query }: Request): Parameters<ObserveRequest>[0] {
  return { info, method, contentType: headers['content-type'] ?? '', isDryRun: query.has('dryRun') }
}

function lengthOf(answer: Answer): number | undefined {
  if (isStream(answer)) return undefined
  const { body } = answer
  return typeof body === 'string' || Buffer.isBuffer(body) ? body.length : answer.length
}

interface Request {
  readonly path: string
  readonly query: URLSearchParams
  readonly info: RequestInfo
}

/** Of the many requests without one. Nobody changes a query. */
const NO_QUERY = new URLSearchParams()

function readRequest({ method, path: target }: Exchange): Request {
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  const query = mark < 0 ? NO_QUERY : new URLSearchParams(target.slice(mark + 1))
  return { path, query, info: requestInfoOf(method, path, query) }
}

async function identify({ authenticate, allowsAnonymous = true }: ApiServerOptions, exchange: Exchange): Promise<User> {
  const user = await authenticate(exchange)
  if (user !== undefined) return authenticated(user)
  if (!allowsAnonymous) throw unauthorizedError('Unauthorized')
  return anonymous
}

async function route(options: ApiServerOptions, call: Call): Promise<Answer> {
  const { info } = call
  if (!info.isResource) return (await options.routes(call)) ?? notFoundPage()
  if (!options.knowsGroup(info.group)) return notFoundPage()
  return options.dispatch(call)
}

function notFoundPage(): WholeAnswer {
  return {
    status: 404,
    contentType: 'text/plain; charset=utf-8',
    body: '404 page not found\n',
    headers: { 'X-Content-Type-Options': 'nosniff' },
  }
}

interface CallParts {
  readonly exchange: Exchange
  readonly request: Request
  readonly user: User
  readonly warnings: string[]
}

function createCall({ exchange, request, user, warnings }: CallParts): Call {
  let body: Promise<Buffer> | undefined
  return {
    method: exchange.method,
    info: request.info,
    query: request.query,
    header(name) {
      const value = exchange.headers[name]
      return typeof value === 'string' ? value : (value?.join(', ') ?? '')
    },
    body: () => (body ??= exchange.readBody(MAX_BODY_BYTES)),
    user,
    get signal() {
      return exchange.signal
    },
    warn(text) {
      if (!warnings.includes(text)) warnings.push(text)
    },
  }
}

/** `timeout` is the client's wish, at most ours. Watches and connections that are handed on have no deadline here. */
function withDeadline(
  { deadlines, limitMs }: AnswerContext,
  { query, info }: Request,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const wish = query.get('timeout')
  const wishMs = wish === null || info.verb === 'watch' ? limitMs : timeoutOf(wish)
  if (isLongRunning(info) || info.rest.length > 0) return work()
  const late = Promise.withResolvers<Answer>()
  const deadline = deadlines(Math.min(limitMs, wishMs), () => late.reject(timedOut()))
  work()
    .then(late.resolve, late.reject)
    .finally(() => deadline.cancel())
  return late.promise
}

function timedOut(): Error {
  const message = 'Timeout: request did not complete within the allotted timeout'
  return failure({ code: 504, reason: 'Timeout', message, details: {} })
}

function timeoutOf(text: string): number {
  try {
    return durationMs(text)
  } catch (cause) {
    throw badRequestError(`invalid timeout specified in the request URL - ${(cause as Error).message}`)
  }
}

function asStatus(error: unknown): StatusError {
  if (error instanceof StatusError) return error
  if (error instanceof BodyError && error.code === 'too-large')
    return requestEntityTooLargeError(`limit is ${MAX_BODY_BYTES}`)
  return internalError(error instanceof Error ? error : new Error(String(error)))
}

/** Errors obey Accept too; a client that accepts nothing we have gets indented JSON. */
function errorAnswer({ encoder }: ApiServerOptions, exchange: Exchange, { status }: StatusError): WholeAnswer {
  const accept = exchange.headers.accept ?? ''
  const outcome = negotiateAccept(accept, { endpoint: 'object', mediaTypes: MEDIA_TYPES, tables: true })
  const refused = isRefusal(outcome)
  const negotiated = refused
    ? ({ mediaType: 'application/json', stream: false, pretty: true } as const)
    : { ...outcome, as: undefined }
  const { as: _, ...plain } = { as: undefined, ...negotiated }
  const answer = encoder.value(status, { negotiated: plain, pretty: refused }, status.code ?? 500)
  const retry = status.details?.retryAfterSeconds
  const headers = {
    ...(retry === undefined ? {} : { 'Retry-After': String(retry) }),
    ...(status.code === 403 ? { 'X-Content-Type-Options': 'nosniff' } : {}),
  }
  return { ...answer, headers }
}

interface AnswerContext {
  readonly auditId: string
  readonly warnings: string[]
  readonly headers: string[]
  readonly streams: Streams
  readonly deadlines: Deadlines
  /** How long making the answer may take, and then sending it. */
  readonly limitMs: number
}

async function send(exchange: Exchange, answer: Answer, context: AnswerContext): Promise<void> {
  const { body, length } = answer as WholeAnswer
  const headers = headersOf(answer, context)
  if (isStream(answer)) return streamTo(exchange, headers, answer, context.streams)
  if (typeof body === 'string' || Buffer.isBuffer(body)) return exchange.respond(answer.status, headers, body)
  // Whoever takes a large answer too slowly holds its bytes; not for ever.
  const deadline = context.deadlines(context.limitMs, () => exchange.fail())
  try {
    const lengthBytes = length === undefined ? {} : { lengthBytes: length }
    await exchange.respondPieces(answer.status, headers, { pieces: body, ...lengthBytes })
  } finally {
    deadline.cancel()
  }
}

function headersOf({ contentType, headers: own }: Answer, { auditId, warnings, headers }: AnswerContext): string[] {
  const cacheControl = own?.['Cache-Control'] ?? 'no-cache, private'
  const all = ['Audit-Id', auditId, 'Cache-Control', cacheControl, 'Content-Type', contentType]
  if (own !== undefined) {
    for (const [name, value] of Object.entries(own)) if (name !== 'Cache-Control') all.push(name, value)
  }
  if (warnings.length > 0) all.push(...warningHeaders(warnings))
  all.push(...headers)
  return all
}

/** Answers without end that are running; all of them end when the server does. */
interface Streams {
  /** Aborted when the stream is to end. `release` when it has. */
  open(): AbortController
  release(stream: AbortController): void
}

/** One listener for all of them: a signal for each, joined to the server's, would cost more than the watch itself. */
function createStreams(draining: AbortSignal | undefined): Streams {
  const running = new Set<AbortController>()
  draining?.addEventListener('abort', () => running.forEach((stream) => stream.abort()), { once: true })
  return {
    open() {
      const stream = new AbortController()
      if (draining?.aborted) stream.abort()
      running.add(stream)
      return stream
    },
    release: (stream) => void running.delete(stream),
  }
}

async function streamTo(
  exchange: Exchange,
  headers: HeaderList,
  answer: Extract<Answer, { stream: unknown }>,
  streams: Streams,
): Promise<void> {
  const writer = exchange.stream(answer.status, headers)
  const gone = streams.open()
  writer.onClose(() => gone.abort())
  const out: AnswerStream = {
    write(chunk) {
      if (typeof chunk === 'string') return writer.write(Buffer.from(chunk, 'latin1'))
      return Buffer.isBuffer(chunk) ? writer.write(chunk) : writer.writeFrame(chunk)
    },
    drained: () => writer.drained(),
    end: () => writer.end(),
    signal: gone.signal,
  }
  try {
    await answer.stream(out)
  } finally {
    streams.release(gone)
  }
}

/** The client's own id is kept, so that its logs and ours can be laid side by side. */
function auditIdOf({ headers }: Exchange, random: Random): string {
  const given = headers['audit-id']
  return typeof given === 'string' && given !== '' ? given : uuid(random)
}
