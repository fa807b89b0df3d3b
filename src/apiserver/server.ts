/**
 * The API server: exchanges in, answers out. Each request passes the same steps in the same order: what is it about,
 * who asks, may they, then its route. Everything that can go wrong becomes a Status in the form the client accepts.
 */
import type { Clock } from '#lib/clock.ts'
import { createDeadlines } from '#lib/deadlines.ts'
import { BodyError, type Exchange, type HeaderList } from '#lib/http/exchange.ts'
import { type Random, uuid } from '#lib/random.ts'
import { durationMs } from '#meta/duration.ts'
import {
  badRequestError,
  failure,
  genericError,
  internalError,
  requestEntityTooLargeError,
} from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'

import { errorAnswer } from './answers/error-answer.ts'
import { notFoundPage } from './answers/not-found-page.ts'
import type { Representation } from './answers/representation.ts'
import { createStreams, send, type SendContext } from './answers/sending.ts'
import type { Audit } from './audit/audit.ts'
import type { AuditTrail } from './audit/trail.ts'
import { type Answer, type Call, type Interfere, isStream, isUpgrade, letGo, type WholeAnswer } from './call.ts'
import type { Place } from './fairness/fairness.ts'
import type { Cors } from './filters/cors.ts'
import type { Impersonate } from './filters/impersonation.ts'
import { isLongRunning } from './filters/inflight.ts'
import { createLargeBodies, LARGE_BODY_LIMITS, type LargeBodies } from './filters/large-bodies.ts'
import { identify, type Passing, type PassingOptions, permit, received, takePlace } from './filters/passing.ts'
import type { RequestTrace, TraceRequest } from './filters/tracing.ts'
import { type MeterRequest, type RequestMeter, UNMETERED } from './metrics/requests.ts'
import { isAddedGroup } from './registry/served-groups.ts'
import { type RequestInfo, requestInfoOf } from './request-info.ts'
import { ServerCall } from './server-call.ts'

/** A path that is no resource: health, version, discovery. Undefined: not ours. */
export type Route = (call: Call) => Promise<Answer> | Answer | undefined

/** What every request passes, and where it ends. */
export interface ApiServerOptions extends PassingOptions {
  readonly clock: Clock
  readonly random: Random
  /** Whom a request counts as; default: whoever asks. */
  readonly impersonate?: Impersonate
  readonly cors?: Cors
  /** `--request-timeout`; a watch ends by its own rules. */
  readonly requestTimeoutMs?: number
  /** Headers of every answer. */
  readonly fixedHeaders?: HeaderList
  /** What is done is put on record. */
  readonly audit?: Audit
  /** Requests that other servers answer; undefined for all others. */
  readonly delegate?: (call: Call) => Promise<Answer> | undefined
  /** Resources. */
  readonly dispatch: (call: Call) => Promise<Answer>
  /** Whether the group version is known at all: others are not a Status but plain text. */
  readonly knowsGroup: (group: string) => boolean
  readonly routes: Route
  readonly interfere?: Interfere
  /** Encodes a Status in what the client accepts. */
  readonly encoder: Pick<Representation, 'value'>
  readonly onError?: (error: unknown, info: RequestInfo) => void
  readonly meterRequest?: MeterRequest
  /** Where requests are traced. */
  readonly traceRequest?: TraceRequest
  /** Aborted when the server stops: answers without end are ended then. */
  readonly draining?: AbortSignal
}

/** How long a request may take; a watch ends by its own rules. */
const REQUEST_TIMEOUT_MS = 60_000

export function createApiServer(options: ApiServerOptions): (exchange: Exchange) => Promise<void> {
  const streams = createStreams(options.draining)
  const deadlines = createDeadlines(options.clock, options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS)
  const bodies = createLargeBodies(options.clock)
  return async (exchange) => {
    const cross = options.cors?.(exchange)
    if (cross !== undefined && exchange.method === 'OPTIONS') return exchange.respond(204, cross)
    const request = readRequest(exchange)
    const auditId = auditIdOf(exchange, options.random)
    const { meter, trace } = watching(options, exchange, { request, auditId })
    const audit = options.audit?.begin({ exchange, info: request.info, auditId })
    const context: AnswerContext = {
      auditId,
      audit,
      meter,
      trace,
      warnings: [],
      headers: [...(options.fixedHeaders ?? []), ...(cross ?? [])],
      streams,
      deadlines,
      bodies,
      limitMs: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
      arrivedMs: options.clock.elapsed(),
      place: undefined,
    }
    let code = 500
    let bytes: number | undefined
    try {
      const made = await answerWithin(options, exchange, { request, context })
      const answer = audit === undefined ? made : await recorded(audit, made, { options, exchange })
      ;({ status: code } = answer)
      bytes = lengthOf(answer)
      const sending = send(exchange, answer, context)
      if (audit !== undefined) await audit.following(answer, Promise.resolve(sending))
      else if (sending !== undefined) await sending
    } finally {
      context.place?.end?.()
      meter.end(code, bytes)
    }
  }
}

interface Progress {
  readonly request: Request
  readonly context: AnswerContext
}

/** Who counts the request, and who traces it. */
function watching(
  options: ApiServerOptions,
  exchange: Exchange,
  { request, auditId }: { readonly request: Request; readonly auditId: string },
): Pick<AnswerContext, 'meter' | 'trace'> {
  const meter = options.meterRequest?.(observed(exchange, request)) ?? UNMETERED
  const trace = options.traceRequest?.({ exchange, info: request.info, auditId })
  return { meter: trace?.metered(meter) ?? meter, trace }
}

function answerWithin(options: ApiServerOptions, exchange: Exchange, progress: Progress): Promise<Answer> {
  const { trace } = progress.context
  if (trace === undefined) return answerTo(options, exchange, progress)
  return trace.run(() => answerTo(options, exchange, progress))
}

/** Never throws: what goes wrong is an answer too. A place among the running requests is held until there is one. */
async function answerTo(
  options: ApiServerOptions,
  exchange: Exchange,
  { request, context }: Progress,
): Promise<Answer> {
  const { info, query } = request
  const { meter } = context
  let answer: Answer | undefined
  try {
    const limitMs = timeLimitOf(context, request)
    const known = identify(options, exchange, { path: request.path, meter })
    let user = known instanceof Promise ? await known : known
    if (user.warnings !== undefined) context.warnings.push(...user.warnings)
    context.trace?.identified(user)
    const audit = context.audit === undefined ? undefined : await received(context.audit, user, meter)
    if (options.impersonate !== undefined) {
      user = await options.impersonate(user, info, exchange, audit?.impersonated)
      meter.passed('impersonation')
    }
    const passing: Passing = { user, info, audit, meter, headers: context.headers }
    const waitMs = waitLimitOf(limitMs) - (options.clock.elapsed() - context.arrivedMs)
    const taken = takePlace(options, passing, { query, waitMs, signal: () => exchange.signal })
    const place = taken instanceof Promise ? await taken : taken
    if ('retryAfterSeconds' in place) return tooManyRequests(place.retryAfterSeconds)
    context.place = place
    const permitting = permit(options, passing)
    if (permitting !== undefined) await permitting
    meter.routed()
    const { authorize } = options
    const leftMs = taken === place ? limitMs : limitMs - (options.clock.elapsed() - context.arrivedMs)
    const deadlineMs = isLongRunning(info) ? undefined : options.clock.elapsed() + leftMs
    const call = new ServerCall({ context, exchange, request, user, audit, authorize, deadlineMs })
    context.trace?.handling()
    answer = await withDeadline(context, request, leftMs, () => answerOf(options, call))
    context.trace?.answering()
    return answer
  } catch (error) {
    return await failed(options, exchange, { request, context }, error)
  } finally {
    leavePlace(context.place, answer)
  }
}

/** Sending an answer takes no place: whoever reads slowly keeps nobody else waiting. */
function leavePlace(place: Place | undefined, answer: Answer | undefined): void {
  if (place === undefined) return
  const begun = answer !== undefined && isStream(answer) ? answer.begun : undefined
  if (begun === undefined) place.leave()
  else void begun.then(() => place.leave())
}

/** Nobody waits longer for their turn, however much time they have. */
const MAX_WAIT_MS = 60_000

/** A quarter of the time a request has. */
function waitLimitOf(limitMs: number): number {
  return Math.min(limitMs / 4, MAX_WAIT_MS)
}

async function failed(
  options: ApiServerOptions,
  exchange: Exchange,
  { request, context }: Progress,
  error: unknown,
): Promise<Answer> {
  const status = asStatus(error)
  if (error !== status && status.status.code === 500) {
    options.onError?.(error, request.info)
    await context.audit?.panicked(error)
  }
  return errorAnswer(options.encoder, exchange, status)
}

/** The answer to send, now that there is a record of it. */
async function recorded(
  audit: AuditTrail,
  answer: Answer,
  { options, exchange }: { readonly options: ApiServerOptions; readonly exchange: Exchange },
): Promise<Answer> {
  try {
    return await audit.answered(answer)
  } catch (error) {
    letGo(answer)
    return errorAnswer(options.encoder, exchange, asStatus(error))
  }
}

/** Upstream's own words, as plain text: no Status is made when there is no time for anything. */
function tooManyRequests(retryAfterSeconds: number): WholeAnswer {
  return {
    status: 429,
    contentType: 'text/plain; charset=utf-8',
    body: 'Too many requests, please try again later.\n',
    headers: { 'Retry-After': String(retryAfterSeconds), 'X-Content-Type-Options': 'nosniff' },
  }
}

function observed({ method, headers }: Exchange, { info, query }: Request): Parameters<MeterRequest>[0] {
  return { info, method, contentType: headers['content-type'] ?? '', query }
}

function lengthOf(answer: Answer): number | undefined {
  if (isStream(answer) || isUpgrade(answer)) return undefined
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

function answerOf(options: ApiServerOptions, call: Call): Promise<Answer> {
  const { interfere } = options
  return interfere === undefined ? route(options, call) : interfere(call, () => route(options, call))
}

async function route(options: ApiServerOptions, call: Call): Promise<Answer> {
  const { info } = call
  const delegated = options.delegate?.(call)
  if (delegated !== undefined) return delegated
  if (!info.isResource) return (await options.routes(call)) ?? unknownPath(options, info)
  if (!options.knowsGroup(info.group)) return notFoundPage()
  return options.dispatch(call)
}

/** A version that is not served of a group that is, is the API's to refuse. */
function unknownPath({ knowsGroup }: ApiServerOptions, { path, apiPrefix, group }: RequestInfo): WholeAnswer {
  const isKnown = apiPrefix === 'apis' && knowsGroup(group) && !isAddedGroup(group)
  if (!/^\/api\/./.test(path) && !isKnown) return notFoundPage()
  throw genericError({ code: 404, method: 'GET' })
}

/** `timeout` is the client's wish, at most ours. The query of what goes on, such as an exec, is for somebody else. */
function timeLimitOf({ limitMs }: AnswerContext, { query, info }: Request): number {
  const wish = query.get('timeout')
  const wishMs = wish === null || isLongRunning(info) ? 0 : timeoutOf(wish)
  return wishMs > 0 ? Math.min(limitMs, wishMs) : limitMs
}

/** Watches and connections that are handed on have no deadline here. */
function withDeadline(
  { deadlines, meter }: AnswerContext,
  { info }: Request,
  limitMs: number,
  work: () => Promise<Answer>,
): Promise<Answer> {
  if (isLongRunning(info) || info.rest.length > 0) return work()
  const late = Promise.withResolvers<Answer>()
  let isLate = false
  const deadline = deadlines(limitMs, () => {
    isLate = true
    meter.terminated(504)
    late.reject(timedOut())
  })
  const settle = (answer: Answer): void => {
    deadline.cancel()
    if (!isLate) return late.resolve(answer)
    meter.finishedLate('ok')
    letGo(answer)
  }
  const refuse = (error: unknown): void => {
    deadline.cancel()
    if (isLate) meter.finishedLate('error')
    late.reject(error)
  }
  void work().then(settle, refuse)
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

/** The client's doing, each of them. */
function bodyFailure({ code, message }: BodyError): StatusError {
  if (code === 'too-large') return requestEntityTooLargeError(`limit is ${LARGE_BODY_LIMITS.maxBytes}`)
  if (code === 'timeout') return failure({ code: 408, reason: 'Timeout', message: `Timeout: ${message}`, details: {} })
  return badRequestError('unexpected EOF')
}

function asStatus(error: unknown): StatusError {
  if (error instanceof StatusError) return error
  if (error instanceof BodyError) return bodyFailure(error)
  return internalError(error instanceof Error ? error : new Error(String(error)))
}

interface AnswerContext extends SendContext {
  readonly audit: AuditTrail | undefined
  readonly meter: RequestMeter
  readonly trace: RequestTrace | undefined
  readonly bodies: LargeBodies
  /** When the request came, by the clock's `elapsed`. */
  readonly arrivedMs: number
  /** Among the running requests, once it has one. */
  place: Place | undefined
}

/** The client's own id is kept, so that its logs and ours can be laid side by side. */
function auditIdOf({ headers }: Exchange, random: Random): string {
  const given = headers['audit-id']
  return typeof given === 'string' && given !== '' ? given : uuid(random)
}
