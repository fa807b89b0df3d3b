/**
 * The types of a request (call) and its response (answer) between transport and handler. HTTPS and the in-process
 * transport make the same calls, so both pass the same filters and handlers.
 */
import type { RequestInfo } from '#auth/request-info.ts'
import type { User } from '#auth/user.ts'
import type { Exchange, HeaderList, SharedFrame } from '#lib/http/exchange.ts'
import type { KubeObject } from '#meta/object.ts'

export interface Call {
  readonly method: string
  readonly info: RequestInfo
  readonly query: URLSearchParams
  /** By lower-case name; empty when absent. */
  header(name: string): string
  /** The whole body. Throws StatusError 413 beyond the limit. */
  body(): Promise<Buffer>
  /** The size of the body, once it has been read. */
  readonly bodyBytes?: number
  /** The original request for proxies: target, headers, body stream and connection. */
  readonly exchange: Exchange
  readonly user: User
  /** The audit ID, also for the servers to which the request is proxied. */
  readonly auditId: string
  /** For a request that also does the work of another verb. Throws StatusError 403 unless the user may do that too. */
  demand(verb: string): Promise<void>
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal
  /** The deadline by `clock.elapsed()`; undefined for long-running requests. */
  readonly deadlineMs?: number | undefined
  /** Adds a Warning header; the same text only once. */
  warn(text: string): void
  /** The audit trail of the call; absent if the policy selects nothing. */
  readonly audit?: AuditNotes | undefined
}

/** The first value of a key stays. `from` is the lowest audit level that shows it; default: all. */
export type Annotate = (key: string, value: string, from?: 'Request') => void

/** Audit data from handlers and admission. */
export interface AuditNotes {
  readonly annotate: Annotate
  /** The decoded body. The trail copies it at once; `complete` adds defaults to the copy. */
  body(object: KubeObject, complete?: (copy: KubeObject) => void): void
  /** The body of a patch of any type. */
  patch(bytes: Buffer): void
}

/** A complete response. A string body is latin1: one character per byte. */
export interface WholeAnswer {
  /** Called once, when it has been sent or will not be. */
  sent?(): void
  readonly status: number
  readonly contentType: string
  readonly body: string | Buffer | Iterable<Buffer>
  /** The length of a body in pieces, if known. */
  readonly length?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** The writer of a watch. */
export interface AnswerStream {
  /** Each write is a separate message and must not be joined with others. */
  readonly isMessages?: boolean
  /** See `ResponseWriter`. */
  readonly sharesFrames?: boolean | undefined
  /** False if the client does not keep up; `drained` resolves when writing may continue. */
  write(chunk: string | Buffer | SharedFrame): boolean
  drained(): Promise<void>
  end(): void
  /** Aborts the response, so that the client cannot take it for complete. */
  abort(): void
  /** Aborted when the client leaves or the server stops. */
  readonly signal: AbortSignal
}

/** A streaming response: a watch, a log, a proxied response. */
export interface StreamAnswer {
  readonly status: number
  /** Empty: there is none, or it is in `passedOn`. */
  readonly contentType: string
  /** True if the client may stop reading for any time: a log, a proxied response. */
  readonly isPatient?: boolean
  /** Headers of another server, alternating names and values. */
  readonly passedOn?: HeaderList
  readonly headers?: Readonly<Record<string, string>>
  /** For a watch: resolves when the initial state is sent or the client is slow. Absent: at once. */
  readonly begun?: Promise<void>
  /** Resolves when everything is written. */
  stream(out: AnswerStream): Promise<void>
  /** Called instead of `write` if the response is not sent: releases its source. */
  drop?(): void
}

/** A response that upgrades the connection to another protocol. */
export interface UpgradeAnswer {
  readonly status: 101
  /** Takes over the connection until it ends. `signal` is aborted when the server stops. */
  upgrade(exchange: Exchange, signal: AbortSignal): Promise<void>
  /** Called instead if the response is not sent: releases its target. */
  drop?(): void
}

export type Answer = WholeAnswer | StreamAnswer | UpgradeAnswer

/** A hook between filters and handler for fault-injection tests: it may delay, replace or fail a response. */
export type Interfere = (call: Call, answer: () => Promise<Answer>) => Promise<Answer>

/** The same call with some members replaced. It shares the body that was read. */
export function otherwise(call: Call, changes: Partial<Pick<Call, 'header' | 'info'>>): Call {
  return Object.assign(Object.create(call), changes) as Call
}

export function isStream(answer: Answer): answer is StreamAnswer {
  return 'stream' in answer
}

export function isWhole(answer: Answer): answer is WholeAnswer {
  return 'body' in answer
}

/** For a response that is not sent. */
export function letGo(answer: Answer): void {
  if (isWhole(answer)) answer.sent?.()
  else answer.drop?.()
}

export function isUpgrade(answer: Answer): answer is UpgradeAnswer {
  return 'upgrade' in answer
}
