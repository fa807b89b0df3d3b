/**
 * Call and answer: a request after its transport and before its verb, and what comes back. HTTPS and the in-process
 * transport make the same calls, so both pass the same filters and handlers.
 */
import type { Exchange, HeaderList, SharedFrame } from '#lib/http/exchange.ts'
import type { KubeObject } from '#meta/object.ts'

import type { Annotate } from './registry/admission.ts'
import type { User } from './registry/resource.ts'
import type { RequestInfo } from './request-info.ts'

export interface Call {
  readonly method: string
  readonly info: RequestInfo
  readonly query: URLSearchParams
  /** By lower-case name; empty when absent. */
  header(name: string): string
  /** The whole body. Throws StatusError 413 beyond the limit. */
  body(): Promise<Buffer>
  /** Of the body, once it has been read. */
  readonly bodyBytes?: number
  /** The request as it came, for those who pass it on: target, headers, body piece by piece, and the connection. */
  readonly exchange: Exchange
  readonly user: User
  /** Under which the request is on record, here and with those it is passed on to. */
  readonly auditId: string
  /** For a request that does the work of another verb as well. Throws StatusError 403 unless the user may that too. */
  demand(verb: string): Promise<void>
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal
  /** When the client is told that it took too long, by `clock.elapsed()`; undefined for what may go on. */
  readonly deadlineMs?: number | undefined
  /** Adds a Warning header; the same text only once. */
  warn(text: string): void
  /** What the audit log wants to know of the call; absent when it wants nothing. */
  readonly audit?: AuditNotes | undefined
}

/** What handlers and admission tell the audit log. */
export interface AuditNotes {
  readonly annotate: Annotate
  /** The decoded body. What the log keeps of it is copied at once; `complete` is given the copy to add defaults to. */
  body(object: KubeObject, complete?: (copy: KubeObject) => void): void
  /** The body of a patch, whatever its language. */
  patch(bytes: Buffer): void
}

/** A finished answer. A string body is latin1: one character a byte. */
export interface WholeAnswer {
  /** Called once, when it has been sent or will not be. */
  sent?(): void
  readonly status: number
  readonly contentType: string
  readonly body: string | Buffer | Iterable<Buffer>
  /** Bytes of a body in pieces, where they are known. */
  readonly length?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** Where a watch writes. */
export interface AnswerStream {
  /** Each write is a message of its own: what belongs to two must not be joined. */
  readonly isMessages?: boolean
  /** See `ResponseWriter`. */
  readonly sharesFrames?: boolean | undefined
  /** False when the client does not keep up; `drained` then tells when to go on. */
  write(chunk: string | Buffer | SharedFrame): boolean
  drained(): Promise<void>
  end(): void
  /** Breaks off, so that the client cannot take what it has for complete. */
  abort(): void
  /** Aborted when the client has gone, or the server stops. */
  readonly signal: AbortSignal
}

/** An answer that goes on: a watch, a log, what another server answers. */
export interface StreamAnswer {
  readonly status: number
  /** Empty: the answer has none, or it is in `passedOn`. */
  readonly contentType: string
  /** The client may stop reading for as long as it likes: a log, what another server sends. */
  readonly isPatient?: boolean
  /** Headers of another server, names and values in turn. */
  readonly passedOn?: HeaderList
  readonly headers?: Readonly<Record<string, string>>
  /** Of a watch: resolves when it has sent what there was, or waits for its client. Absent: it has. */
  readonly begun?: Promise<void>
  /** Writes until it is done; resolves then. */
  stream(out: AnswerStream): Promise<void>
  /** Called instead when the answer is not sent after all: lets go of what it comes from. */
  drop?(): void
}

/** An answer after which the connection speaks another protocol. */
export interface UpgradeAnswer {
  readonly status: 101
  /** Takes the connection over and serves it until it is over. `signal` is aborted when the server stops. */
  upgrade(exchange: Exchange, signal: AbortSignal): Promise<void>
  /** Called instead when the answer is not sent after all: lets go of what it leads to. */
  drop?(): void
}

export type Answer = WholeAnswer | StreamAnswer | UpgradeAnswer

/**
 * Stands between a request that was let in and whoever answers it: may be late, answer otherwise, or throw what is to be
 * answered instead. For tests in which something goes wrong.
 */
export type Interfere = (call: Call, answer: () => Promise<Answer>) => Promise<Answer>

/** The same call, but for what is said otherwise. What has been read of its body is the same too. */
export function otherwise(call: Call, changes: Partial<Pick<Call, 'header' | 'info'>>): Call {
  return Object.assign(Object.create(call), changes) as Call
}

export function isStream(answer: Answer): answer is StreamAnswer {
  return 'stream' in answer
}

export function isWhole(answer: Answer): answer is WholeAnswer {
  return 'body' in answer
}

/** For an answer that is not sent after all. */
export function letGo(answer: Answer): void {
  if (isWhole(answer)) answer.sent?.()
  else answer.drop?.()
}

export function isUpgrade(answer: Answer): answer is UpgradeAnswer {
  return 'upgrade' in answer
}
