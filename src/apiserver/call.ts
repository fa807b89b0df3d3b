/**
 * Call and answer: a request after its transport and before its verb, and what comes back. HTTPS and the in-process
 * transport make the same calls, so both pass the same filters and handlers.
 */
import type { SharedFrame } from '#lib/http/exchange.ts'

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
  readonly user: User
  /** Aborted when the client has gone or the time is up. */
  readonly signal: AbortSignal
  /** Adds a Warning header; the same text only once. */
  warn(text: string): void
}

/** A finished answer. A string body is latin1: one character a byte. */
export interface WholeAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string | Buffer | Iterable<Buffer>
  /** Bytes of a body in pieces, where they are known. */
  readonly length?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** Where a watch writes. */
export interface AnswerStream {
  /** False when the client does not keep up; `drained` then tells when to go on. */
  write(chunk: string | Buffer | SharedFrame): boolean
  drained(): Promise<void>
  end(): void
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal
}

/** An answer that goes on: a watch. */
export interface StreamAnswer {
  readonly status: number
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** Writes until it is done; resolves then. */
  stream(out: AnswerStream): Promise<void>
}

export type Answer = WholeAnswer | StreamAnswer

export function isStream(answer: Answer): answer is StreamAnswer {
  return 'stream' in answer
}
