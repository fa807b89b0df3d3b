/**
 * The server of requests: passes each request through the same filters in the same order, then to its route or
 * resource, and sends the response. Every error becomes a Status in a form that the client accepts.
 */
import type { RequestInfo } from '#auth/request-info.ts'
import { type Cause, CAUSES_HEADER, parseCausesHeader, withCauses } from '#lib/causes.ts'
import { createDeadlines } from '#lib/deadlines.ts'
import { BodyError, type Exchange, type HeaderList } from '#lib/http/exchange.ts'
import { type Random, uuid } from '#lib/random.ts'
import {
  badRequestError,
  failure,
  genericError,
  internalError,
  requestEntityTooLargeError,
} from '#meta/status-errors.ts'
import { StatusError } from '#meta/status.ts'
import { isAddedGroup } from '#model/catalog-groups.ts'

import { ActiveRequest, type IncomingRequest, readRequest, type ServerState } from './active-request.ts'
import { type Answer, type Call, isStream, isUpgrade, letGo, type WholeAnswer } from './call.ts'
import { errorAnswer } from './error-answer.ts'
import { type Filter, runFilters } from './filters/filter.ts'
import { FILTERS } from './filters/index.ts'
import { createLargeBodies, LARGE_BODY_LIMITS } from './large-bodies.ts'
import { notFoundPage } from './not-found-page.ts'
import type { RequestAudit, Seat } from './request-filters.ts'
import { UNMETERED } from './request-meter.ts'
import { createStreams, send } from './sending.ts'
import { ServerCall } from './server-call.ts'
import type { RequestServerOptions } from './server-options.ts'

/** The timeout of a request; watches have their own. */
const REQUEST_TIMEOUT_MS = 60_000

export function createRequestServer(options: RequestServerOptions): (exchange: Exchange) => Promise<void> {
  const { clock, cors, requestTimeoutMs: limitMs = REQUEST_TIMEOUT_MS } = options
  const filters = FILTERS.flatMap((create) => create(options) ?? [])
  const state: ServerState = {
    streams: createStreams(options.draining),
    deadlines: createDeadlines(clock, limitMs),
    bodies: createLargeBodies(clock),
    limitMs,
  }
  return async (exchange) => {
    const cross = cors?.(exchange)
    if (cross !== undefined && exchange.method === 'OPTIONS') return exchange.respond(204, cross)
    const request = begin(options, state, { incoming: readRequest(exchange), headers: cross ?? [] })
    const { audit, trace, meter } = request
    let code = 500
    let bytes: number | undefined
    try {
      const work = (): Promise<Answer> => answerTo(options, filters, request)
      const made = await (trace === undefined ? work() : trace.run(work))
      const answer = audit === undefined ? made : await recorded(audit, made, { options, exchange })
      ;({ status: code } = answer)
      bytes = lengthOf(answer)
      const sending = send(exchange, answer, request)
      if (audit !== undefined) await audit.following(answer, Promise.resolve(sending))
      else if (sending !== undefined) await sending
    } finally {
      request.seat?.end?.()
      meter.end(code, bytes)
    }
  }
}

/** Starts the audit, the meter and the trace of a request. `headers` are those of its response. */
function begin(
  options: RequestServerOptions,
  state: ServerState,
  { incoming, headers }: { readonly incoming: IncomingRequest; readonly headers: HeaderList },
): ActiveRequest {
  const { exchange, info, query } = incoming
  const { method } = exchange
  const auditId = auditIdOf(exchange, options.random)
  const contentType = exchange.headers['content-type'] ?? ''
  const meter = options.meterRequest?.({ info, method, contentType, query }) ?? UNMETERED
  const trace = options.traceRequest?.({ exchange, info, auditId })
  return new ActiveRequest(incoming, state, {
    auditId,
    audit: options.audit?.begin({ exchange, info, auditId }),
    meter: trace?.metered(meter) ?? meter,
    trace,
    headers: [...(options.fixedHeaders ?? []), ...headers],
    arrivedMs: options.clock.elapsed(),
  })
}

/** Never throws: errors become responses. The request keeps its seat until there is a response. */
async function answerTo(
  options: RequestServerOptions,
  filters: readonly Filter[],
  request: ActiveRequest,
): Promise<Answer> {
  let answer: Answer | undefined
  try {
    const filtering = runFilters(filters, request)
    if (filtering !== undefined) await filtering
    if (request.answer !== undefined) return request.answer
    answer = await handle(options, request)
    return answer
  } catch (error) {
    return await failed(options, request, error)
  } finally {
    releaseSeat(request.seat, answer)
  }
}

/** Calls the handler of a request that has passed all filters. */
async function handle(options: RequestServerOptions, request: ActiveRequest): Promise<Answer> {
  const { clock, authorize } = options
  const { limitMs, arrivedMs, hasWaited, isLongRunning, meter, trace } = request
  meter.routed()
  const leftMs = hasWaited ? limitMs - (clock.elapsed() - arrivedMs) : limitMs
  const deadlineMs = isLongRunning ? undefined : clock.elapsed() + leftMs
  const call = new ServerCall({ request, authorize, deadlineMs })
  trace?.handling()
  const causes = causesOf(request)
  const work = (): Promise<Answer> => answerOf(options, call)
  const answer = await withDeadline(request, leftMs, causes === undefined ? work : () => withCauses(causes, work))
  trace?.answering()
  return answer
}

/** The causes that the client of a write claims. A malformed header has no effect. */
function causesOf({ exchange: { method, headers } }: ActiveRequest): readonly Cause[] | undefined {
  const text = headers[CAUSES_HEADER]
  return typeof text === 'string' && method !== 'GET' ? parseCausesHeader(text) : undefined
}

/** Sending a response needs no seat, so a slow reader does not block other requests. */
function releaseSeat(seat: Seat | undefined, answer: Answer | undefined): void {
  if (seat === undefined) return
  const begun = answer !== undefined && isStream(answer) ? answer.begun : undefined
  if (begun === undefined) seat.release()
  else void begun.then(() => seat.release())
}

async function failed(
  options: RequestServerOptions,
  { exchange, info, audit }: ActiveRequest,
  error: unknown,
): Promise<Answer> {
  const status = asStatus(error)
  if (error !== status && status.status.code === 500) {
    options.onError?.(error, info)
    await audit?.panicked(error)
  }
  return errorAnswer(options.encoder, exchange, status)
}

/** The response to send, after its audit event was stored. */
async function recorded(
  audit: RequestAudit,
  answer: Answer,
  { options, exchange }: { readonly options: RequestServerOptions; readonly exchange: Exchange },
): Promise<Answer> {
  try {
    return await audit.answered(answer)
  } catch (error) {
    letGo(answer)
    return errorAnswer(options.encoder, exchange, asStatus(error))
  }
}

function lengthOf(answer: Answer): number | undefined {
  if (isStream(answer) || isUpgrade(answer)) return undefined
  const { body } = answer
  return typeof body === 'string' || Buffer.isBuffer(body) ? body.length : answer.length
}

function answerOf(options: RequestServerOptions, call: Call): Promise<Answer> {
  const { interfere } = options
  return interfere === undefined ? route(options, call) : interfere(call, () => route(options, call))
}

async function route(options: RequestServerOptions, call: Call): Promise<Answer> {
  const { info } = call
  const past = options.past?.(call)
  if (past !== undefined) return past
  if (info.moment !== undefined) return notFoundPage()
  const delegated = options.delegate?.(call)
  if (delegated !== undefined) return delegated
  if (!info.isResource) return (await options.routes(call)) ?? unknownPath(options, info)
  if (!options.knowsGroup(info.group)) return notFoundPage()
  return options.dispatch(call)
}

/** An unserved version of a served group is a Status 404. */
function unknownPath({ knowsGroup }: RequestServerOptions, { path, apiPrefix, group }: RequestInfo): WholeAnswer {
  const isKnown = apiPrefix === 'apis' && knowsGroup(group) && !isAddedGroup(group)
  if (!/^\/api\/./.test(path) && !isKnown) return notFoundPage()
  throw genericError({ code: 404, method: 'GET' })
}

/** Watches and proxied connections have no deadline here. */
function withDeadline(
  { deadlines, meter, info, isLongRunning }: ActiveRequest,
  limitMs: number,
  work: () => Promise<Answer>,
): Promise<Answer> {
  if (isLongRunning || info.rest.length > 0) return work()
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

/** Errors that the client caused. */
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

/** The client's own ID is kept, so that logs of both sides can be matched. */
function auditIdOf({ headers }: Exchange, random: Random): string {
  const given = headers['audit-id']
  return typeof given === 'string' && given !== '' ? given : uuid(random)
}
