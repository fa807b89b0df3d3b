/** The state that all exchanges of an HTTP server share: its limits, its clock, and whether it is draining. */
import type { Clock } from '../clock.ts'
import { createDeadlines, type Deadlines } from '../deadlines.ts'

export interface HttpLimits {
  /** Size of all headers of a request together. Larger ones are refused (431, or a reset stream). */
  readonly maxHeaderBytes: number
  /** How long a TLS handshake may take. */
  readonly handshakeTimeoutMs: number
  /** How long the head of an HTTP/1.1 request may take to arrive. */
  readonly headersTimeoutMs: number
  /** How long a whole HTTP/1.1 request, body included, may take to arrive; 0 for no limit (uploads through a proxy). */
  readonly requestTimeoutMs: number
  /** How long `readBody` waits for a body. */
  readonly bodyTimeoutMs: number
  /** How long a connection without exchanges is kept. */
  readonly idleTimeoutMs: number
  /** How long a client may leave what is sent to it unread, not a byte of it taken; then it is cut off. */
  readonly stallTimeoutMs: number
  /** Exchanges at the same time on one HTTP/2 connection. */
  readonly maxConcurrentStreams: number
  /** Streams a client may reset at once, and per second after that, before its connection is closed. */
  readonly streamResetBurst: number
  readonly streamResetRate: number
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
}

/**
 * Node's own defaults are for friendly networks: 60 s for a head, 120 s for a handshake, no bound on connections or
 * streams. Headers are bounded well below upstream's 1 MiB because anyone can make a server hold that many times over.
 */
export const DEFAULT_LIMITS: HttpLimits = {
  maxHeaderBytes: 64 << 10,
  handshakeTimeoutMs: 10_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  bodyTimeoutMs: 60_000,
  idleTimeoutMs: 90_000,
  stallTimeoutMs: 30_000,
  maxConcurrentStreams: 100,
  // Every stream of a connection twice over; each costs about as much as a request.
  streamResetBurst: 200,
  streamResetRate: 50,
  maxConnections: 10_000,
  maxConnectionsPerAddress: 5000,
}

export interface ServerContext {
  readonly clock: Clock
  readonly limits: HttpLimits
  readonly isDraining: boolean
  /** Of bodies that are on their way. */
  readonly bodyDeadlines: Deadlines
  /** The time in the form of the `Date` header, made once a second. */
  httpDate(): string
}

/** A context that starts to drain when `draining` says so. */
export function createServerContext(
  clock: Clock,
  limits: HttpLimits,
  draining: { readonly isDraining: boolean },
): ServerContext {
  let second = Number.NaN
  let text = ''
  return {
    clock,
    limits,
    bodyDeadlines: createDeadlines(clock, limits.bodyTimeoutMs),
    get isDraining() {
      return draining.isDraining
    },
    httpDate() {
      const now = Math.floor(clock.now() / 1000)
      if (now !== second) {
        second = now
        text = new Date(now * 1000).toUTCString()
      }
      return text
    },
  }
}
