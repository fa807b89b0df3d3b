/** Interfaces of the request filters that only the API server has: impersonation, seats, audit and tracing. */
import type { Authorize, Decision } from '#auth/access.ts'
import type { Access } from '#auth/authorizer.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import type { Answer, AuditNotes } from './call.ts'
import type { RequestMeter } from './request-meter.ts'

/**
 * Returns the effective user of a request: the requester or the impersonated user. Runs between authentication and
 * authorization. Throws StatusError 400 and 403.
 */
export type Impersonate = (
  user: User,
  info: Access,
  exchange: Pick<Exchange, 'rawHeaders'>,
  note?: NoteImpersonation,
) => User | Promise<User>

/** Called with the impersonated user and the constraint: `impersonate:<mode>`, or empty for none. */
export type NoteImpersonation = (user: User, constraint: string) => void

/** A request for a seat. */
export interface SeatRequest {
  readonly user: User
  readonly info: RequestInfo
  readonly query: URLSearchParams
  /** The maximum time in a queue. */
  readonly waitMs: number
  /** Aborted when the client leaves; created only if the request has to wait. */
  readonly signal: () => AbortSignal
  /** The headers of its response. */
  readonly headers: string[]
}

/** A granted seat. */
export interface Seat {
  /** Called when the request is answered; for a watch, when it is initialized. */
  release(): void
  /** Only for a watch: called once when it has ended. */
  end?(): void
}

/** A rejection with 429. */
export interface Refusal {
  readonly retryAfterSeconds: number
}

export interface SeatAllocation {
  /** A promise only for requests that have to wait. Undefined for exempt connections such as exec. */
  acquire(request: SeatRequest): Seat | Refusal | undefined | Promise<Seat | Refusal>
}

export interface AuditedRequest {
  readonly exchange: Pick<Exchange, 'path' | 'headers' | 'peer'>
  readonly info: RequestInfo
  readonly auditId: string
}

/** The audit trail of one request; its methods are called in the order of the steps. */
export interface RequestAudit extends AuditNotes {
  /** After authentication. Resolves with the trail if there is anything to collect. Throws StatusError 500. */
  received(user: User): Promise<RequestAudit | undefined>
  readonly impersonated: NoteImpersonation
  authorizing(decide: Authorize, user: User, info: RequestInfo): Promise<Decision>
  /** The response to send, after its event was stored. Throws StatusError 500. */
  answered(answer: Answer): Promise<Answer>
  /** Resolves when the response was sent and its last event is stored. */
  following(answer: Answer, sent: Promise<void>): Promise<void>
  /** The handler failed with an unexpected error. */
  panicked(error: unknown): Promise<void>
}

export interface TracedRequest {
  readonly exchange: Exchange
  readonly info: RequestInfo
  readonly auditId: string
}

export interface RequestTrace {
  /** A meter that also records the progress of the request in the trace. */
  metered(meter: RequestMeter): RequestMeter
  /** Runs the handler of the request; its work after `identified` is part of the trace. */
  run<T>(work: () => Promise<T>): Promise<T>
  identified(user: User): void
  /** The verb starts its work. */
  handling(): void
  /** The response is sent now. */
  answering(): void
}

export type TraceRequest = (request: TracedRequest) => RequestTrace
