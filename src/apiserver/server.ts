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
  forbiddenError,
  internalError,
  requestEntityTooLargeError,
  unauthorizedError,
} from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'

import { type Answer, type AnswerStream, type Call, isStream, type WholeAnswer } from './call.ts'
import { anonymous, type Authenticate, authenticated, type Authorize } from './filters.ts'
import type { User } from './registry/resource.ts'
import type { Representation } from './representation.ts'
import { type RequestInfo, requestInfoOf } from './request-info.ts'
import { warningHeaders } from './warnings.ts'

/** A path that is no resource: health, version, discovery. Undefined: not ours. */
export type Route = (call: Call) => Promise<Answer> | Answer | undefined

export interface ApiServerOptions {
  readonly clock: Clock
  readonly random: Random
  readonly authenticate: Authenticate
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
}

/** The largest body upstream takes. */
const MAX_BODY_BYTES = 3 * 1024 * 1024

/** How long a request may take; a watch ends by its own rules. */
const REQUEST_TIMEOUT_MS = 60_000

export function createApiServer(options: ApiServerOptions): (exchange: Exchange) => Promise<void> {
  return async (exchange) => {
    const request = readRequest(exchange)
    const warnings: string[] = []
    const auditId = auditIdOf(exchange, options.random)
    let user = anonymous
    try {
      user = await identify(options, exchange)
      const decision = await options.authorize(user, request.info)
      if (!decision.allowed) throw forbidden(user, request.info, decision.reason)
      const call = createCall({ exchange, request, user, warnings })
      const answer = await withDeadline(options.clock, request, () => route(options, call))
      await send(exchange, answer, { auditId, warnings, flow: options.flowHeaders?.(user, request.info) ?? [] })
    } catch (error) {
      const status = asStatus(error)
      if (error !== status && status.status.code === 500) options.onError?.(error, request.info)
      const flow = options.flowHeaders?.(user, request.info) ?? []
      await send(exchange, errorAnswer(options, exchange, status), { auditId, warnings, flow })
    }
  }
}

interface Request {
  readonly path: string
  readonly query: URLSearchParams
  readonly info: RequestInfo
}

function readRequest({ method, path: target }: Exchange): Request {
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  const query = new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1))
  return { path, query, info: requestInfoOf(method, path, query) }
}

async function identify({ authenticate }: ApiServerOptions, exchange: Exchange): Promise<User> {
  const user = await authenticate(exchange)
  if (user !== undefined) return authenticated(user)
  // Credentials that nobody recognises are wrong ones; none at all are anonymous.
  if (exchange.headers.authorization !== undefined) throw unauthorizedError('Unauthorized')
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
async function withDeadline(clock: Clock, { query, info }: Request, work: () => Promise<Answer>): Promise<Answer> {
  const wish = query.get('timeout')
  if (wish !== null && info.verb !== 'watch') timeoutOf(wish)
  if (info.verb === 'watch' || info.rest.length > 0) return work()
  const limitMs = wish === null ? REQUEST_TIMEOUT_MS : Math.min(REQUEST_TIMEOUT_MS, timeoutOf(wish))
  const late = Promise.withResolvers<never>()
  const timer = clock.after(limitMs, () => late.reject(timedOut()), { background: true })
  try {
    return await Promise.race([work(), late.promise])
  } finally {
    timer.cancel()
    late.promise.catch(() => undefined)
  }
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

function forbidden({ name }: User, info: RequestInfo, reason: string): Error {
  const why = reason === '' ? '' : `: ${reason}`
  if (!info.isResource)
    return forbiddenError(
      { group: '', resource: '' },
      '',
      `User "${name}" cannot ${info.verb} path "${info.path}"${why}`,
    )
  const part = info.subresource === '' ? '' : `/${info.subresource}`
  const where = info.namespace === '' ? 'at the cluster scope' : `in the namespace "${info.namespace}"`
  const resource = { group: info.group, resource: info.resource }
  const text = `User "${name}" cannot ${info.verb} resource "${info.resource}${part}" in API group "${info.group}" ${where}${why}`
  return forbiddenError(resource, info.name, text)
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
  readonly warnings: readonly string[]
  readonly flow: HeaderList
}

async function send(exchange: Exchange, answer: Answer, { auditId, warnings, flow }: AnswerContext): Promise<void> {
  const headers = [
    'Audit-Id',
    auditId,
    'Cache-Control',
    answer.headers?.['Cache-Control'] ?? 'no-cache, private',
    'Content-Type',
    answer.contentType,
    ...Object.entries(answer.headers ?? {}).flatMap(([name, value]) => (name === 'Cache-Control' ? [] : [name, value])),
    ...warningHeaders(warnings),
    ...flow,
  ]
  if (isStream(answer)) return streamTo(exchange, answer.status, headers, answer)
  const { body } = answer
  if (typeof body === 'string' || Buffer.isBuffer(body)) exchange.respond(answer.status, headers, body)
  else
    await exchange.respondPieces(answer.status, headers, {
      pieces: body,
      ...(answer.length === undefined ? {} : { lengthBytes: answer.length }),
    })
}

async function streamTo(
  exchange: Exchange,
  status: number,
  headers: HeaderList,
  answer: Extract<Answer, { stream: unknown }>,
): Promise<void> {
  const writer = exchange.stream(status, headers)
  const gone = new AbortController()
  writer.onClose(() => gone.abort())
  const out: AnswerStream = {
    write: (chunk) => writer.write(typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : chunk),
    drained: () => writer.drained(),
    end: () => writer.end(),
    signal: gone.signal,
  }
  await answer.stream(out)
}

/** The client's own id is kept, so that its logs and ours can be laid side by side. */
function auditIdOf({ headers }: Exchange, random: Random): string {
  const given = headers['audit-id']
  return typeof given === 'string' && given !== '' ? given : uuid(random)
}
