/** The wait times of an agent, and the limit after which it gives up. Pure. */
import type { PlanAnswer, TunnelEnd } from './server.ts'

const NOT_READY_MS = 2000
const FAILED_MS = 10_000
const RECONNECT_MS = 10_000
/** A new virtual switch interrupts connections for seconds, which is not logged. */
const SILENT_RECONNECT_MS = 5000
const SILENT_RECONNECTS = 10
/**
 * The machine is cleaned only after this many consecutive answers that the node is not found, over this time. A server
 * that is being restored from a backup has no nodes for a while, and cleaning cannot be undone.
 */
const NOT_FOUND_ANSWERS = 8
const NOT_FOUND_MS = 300_000
const NOT_FOUND_RETRY_MS = 30_000
/** After this many refusals the node may be unknown, and registers again. */
const REFUSALS_TO_REGISTER = 3
/** A connection that lasted this long counts as good. */
const GOOD_CONNECTION_MS = 60_000

/** Consecutive answers that the node is not found. */
export interface PlanRetryState {
  readonly notFound: number
  /** The time of the first of them. */
  readonly sinceMs: number
}

export const NO_NOT_FOUND: PlanRetryState = { notFound: 0, sinceMs: 0 }

export interface AnswerTimes {
  readonly nowMs: number
  /** The version of the current plan. */
  readonly intervalMs: number
}

export type PlanNext =
  | { readonly kind: 'removed'; readonly message: string }
  | { readonly kind: 'wait'; readonly ms: number; readonly patience: PlanRetryState }

/** Any other answer, or none, resets the count. */
export function afterAnswer(
  patience: PlanRetryState,
  answer: PlanAnswer,
  { nowMs, intervalMs }: AnswerTimes,
): PlanNext {
  const wait = (ms: number): PlanNext => ({ kind: 'wait', ms, patience: NO_NOT_FOUND })
  switch (answer.kind) {
    case 'plan':
    case 'none':
      return wait(intervalMs)
    case 'not-ready':
      return wait(NOT_READY_MS)
    case 'failed':
      return wait(FAILED_MS)
    case 'not-found':
      return afterNotFound(patience, answer.message, nowMs)
  }
}

function afterNotFound(patience: PlanRetryState, message: string, nowMs: number): PlanNext {
  const notFound = patience.notFound + 1
  const sinceMs = patience.notFound === 0 ? nowMs : patience.sinceMs
  if (notFound >= NOT_FOUND_ANSWERS && nowMs - sinceMs >= NOT_FOUND_MS) return { kind: 'removed', message }
  return { kind: 'wait', ms: NOT_FOUND_RETRY_MS, patience: { notFound, sinceMs } }
}

export interface TunnelRetryState {
  readonly refusals: number
  readonly breaks: number
}

export interface TunnelNext {
  readonly waitMs: number
  readonly patience: TunnelRetryState
  /** The next connection registers the node. */
  readonly isToRegister: boolean
  /** True if it should be logged; repeated states are not. */
  readonly isWorthSaying: boolean
}

/** `livedMs`: how long the tunnel was open. */
export function afterTunnel({ refusals, breaks }: TunnelRetryState, end: TunnelEnd, livedMs: number): TunnelNext {
  if (end.kind === 'refused') {
    const count = refusals + 1
    const isToRegister = count >= REFUSALS_TO_REGISTER
    return {
      waitMs: RECONNECT_MS,
      patience: { refusals: isToRegister ? 0 : count, breaks },
      isToRegister,
      isWorthSaying: true,
    }
  }
  const before = livedMs >= GOOD_CONNECTION_MS ? 0 : breaks
  if (end.kind === 'ended')
    return {
      waitMs: RECONNECT_MS,
      patience: { refusals: 0, breaks: before },
      isToRegister: false,
      isWorthSaying: true,
    }
  const count = before + 1
  return {
    waitMs: count <= SILENT_RECONNECTS ? SILENT_RECONNECT_MS : RECONNECT_MS,
    patience: { refusals, breaks: count },
    isToRegister: false,
    isWorthSaying: count === SILENT_RECONNECTS + 1,
  }
}
