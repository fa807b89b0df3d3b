/**
 * The state of one request on its way through the server. Filters set its fields; the handler and the response read
 * them. It is a class, so that V8 gives all requests one shape.
 */
import { anonymous } from '#auth/access.ts'
import { type RequestInfo, requestInfoOf } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import type { Deadlines } from '#lib/deadlines.ts'
import type { Exchange, HeaderList } from '#lib/http/exchange.ts'

import type { Answer } from './call.ts'
import { isLongRunning } from './inflight.ts'
import type { LargeBodies } from './large-bodies.ts'
import type { RequestAudit, RequestTrace, Seat } from './request-filters.ts'
import type { RequestMeter } from './request-meter.ts'
import type { SendContext, Streams } from './sending.ts'

/** The state that all requests of a server share. */
export interface ServerState {
  readonly streams: Streams
  readonly deadlines: Deadlines
  readonly bodies: LargeBodies
  /** The timeout of a request; watches have their own. */
  readonly limitMs: number
}

export class ActiveRequest implements SendContext {
  readonly exchange: Exchange
  readonly path: string
  readonly query: URLSearchParams
  readonly info: RequestInfo
  readonly auditId: string
  readonly meter: RequestMeter
  readonly trace: RequestTrace | undefined
  readonly audit: RequestAudit | undefined
  readonly streams: Streams
  readonly deadlines: Deadlines
  readonly bodies: LargeBodies
  /** The time of arrival by the clock's `elapsed`. */
  readonly arrivedMs: number
  /** The maximum time for the response; the client may ask for less. */
  limitMs: number
  readonly warnings: string[] = []
  /** The headers of the response. */
  readonly headers: string[]
  /** The effective user. */
  user: User = anonymous
  /** The audit trail, if there is anything to collect. */
  trail: RequestAudit | undefined = undefined
  seat: Seat | undefined = undefined
  /** True once a filter has waited for something. */
  hasWaited = false
  /** The response of a filter that refuses the request without an error. */
  answer: Answer | undefined = undefined

  constructor(
    { exchange, path, query, info }: IncomingRequest,
    state: ServerState,
    { auditId, audit, meter, trace, headers, arrivedMs }: Observers,
  ) {
    this.exchange = exchange
    this.path = path
    this.query = query
    this.info = info
    this.auditId = auditId
    this.audit = audit
    this.meter = meter
    this.trace = trace
    this.headers = [...headers]
    this.arrivedMs = arrivedMs
    this.streams = state.streams
    this.deadlines = state.deadlines
    this.bodies = state.bodies
    this.limitMs = state.limitMs
  }

  /** Watches and other requests without a natural end have no timeout here. */
  get isLongRunning(): boolean {
    return isLongRunning(this.info)
  }
}

/** The parts of a request that accompany it from arrival to the last byte. */
interface Observers extends Pick<ActiveRequest, 'auditId' | 'audit' | 'meter' | 'trace' | 'arrivedMs'> {
  readonly headers: HeaderList
}

/** A request before its first filter. */
export interface IncomingRequest {
  readonly exchange: Exchange
  readonly path: string
  readonly query: URLSearchParams
  readonly info: RequestInfo
}

/** Shared by all requests without a query; it must not be modified. */
const NO_QUERY = new URLSearchParams()

export function readRequest(exchange: Exchange): IncomingRequest {
  const { method, path: target } = exchange
  const mark = target.indexOf('?')
  const path = mark < 0 ? target : target.slice(0, mark)
  const query = mark < 0 ? NO_QUERY : new URLSearchParams(target.slice(mark + 1))
  return { exchange, path, query, info: requestInfoOf(method, path, query) }
}
