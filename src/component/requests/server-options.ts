/** The options of a request server: what its filters need, its routes and its resources. */
import type { Authenticate, Authorize } from '#auth/access.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { Clock } from '#lib/clock.ts'
import type { HeaderList } from '#lib/http/exchange.ts'
import type { Random } from '#lib/random.ts'

import type { Answer, Call, Interfere } from './call.ts'
import type { Cors } from './cors.ts'
import type { Inflight } from './inflight.ts'
import type { AuditedRequest, Impersonate, RequestAudit, SeatAllocation, TraceRequest } from './request-filters.ts'
import type { MeterRequest } from './request-meter.ts'
import type { ValueEncoder } from './value-encoder.ts'

/** A path that is not a resource: health, version, discovery. Undefined: not handled. */
export type Route = (call: Call) => Promise<Answer> | Answer | undefined

export interface RequestServerOptions {
  readonly clock: Clock
  readonly random: Random
  readonly authenticate: Authenticate
  readonly authorize: Authorize
  /** `--anonymous-auth`; false: requests without credentials are refused. */
  readonly allowsAnonymous?: boolean
  /** The paths that allow anonymous requests; absent: all. */
  readonly anonymousPaths?: readonly string[]
  /** Returns the effective user; the authenticated one by default. */
  readonly impersonate?: Impersonate
  /** Priority and fairness. */
  readonly fairness?: SeatAllocation
  /** The limit of concurrent requests without priority and fairness. */
  readonly inflight?: Inflight
  readonly cors?: Cors
  /** `--request-timeout`; watches have their own timeout. */
  readonly requestTimeoutMs?: number
  /** Headers of every response. */
  readonly fixedHeaders?: HeaderList
  /** The audit trail. */
  readonly audit?: { begin(request: AuditedRequest): RequestAudit }
  /** Proxies requests to aggregated servers; undefined for all others. */
  readonly delegate?: (call: Call) => Promise<Answer> | undefined
  /** Answers requests for the state at `info.moment`, and about moments; undefined for all others. */
  readonly past?: (call: Call) => Promise<Answer> | undefined
  /** Resources. */
  readonly dispatch: (call: Call) => Promise<Answer>
  /** True if the group version is known; others get plain text instead of a Status. */
  readonly knowsGroup: (group: string) => boolean
  readonly routes: Route
  readonly interfere?: Interfere
  /** Encodes a Status in a form that the client accepts. */
  readonly encoder: ValueEncoder
  readonly onError?: (error: unknown, info: RequestInfo) => void
  readonly meterRequest?: MeterRequest
  /** The tracer of requests. */
  readonly traceRequest?: TraceRequest
  /** Aborted when the server stops, which ends streaming responses. */
  readonly draining?: AbortSignal
}
