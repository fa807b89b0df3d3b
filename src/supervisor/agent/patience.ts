/** How long an agent waits after what, and when it gives up. Pure. */
import type { PlanAnswer, TunnelEnd } from './server.ts'

const NOT_READY_MS = 2000
const FAILED_MS = 10_000
const RECONNECT_MS = 10_000
/** A virtual switch that is laid under the connection cuts it for seconds: nothing to talk about. */
const SILENT_RECONNECT_MS = 5000
const SILENT_RECONNECTS = 10
/**
 * A machine is emptied only after so many answers in a row that its node is not found, over so long a time: a server that is
 * restored from a backup has no nodes for a while, and one answer cannot be taken back.
 */
const NOT_FOUND_ANSWERS = 8
const NOT_FOUND_MS = 300_000
const NOT_FOUND_RETRY_MS = 30_000
/** After so many refusals this node may be unknown, and registers again. */
const REFUSALS_TO_REGISTER = 3
/** A connection that has lasted so long was a good one. */
const GOOD_CONNECTION_MS = 60_000

/** The answers in a row that the node is not found. */
export interface PlanPatience {
  readonly notFound: number
  /** When the first of them came. */
  readonly sinceMs: number
}

export const NO_NOT_FOUND: PlanPatience = { notFound: 0, sinceMs: 0 }

export interface AnswerTimes {
  readonly nowMs: number
  /** Of the plan that holds. */
  readonly intervalMs: number
}

export type PlanNext =
  | { readonly kind: 'removed'; readonly message: string }
  | { readonly kind: 'wait'; readonly ms: number; readonly patience: PlanPatience }

/** Any answer but "not found", also none at all, starts the count anew. */
export function afterAnswer(patience: PlanPatience, answer: PlanAnswer, { nowMs, intervalMs }: AnswerTimes): PlanNext {
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

function afterNotFound(patience: PlanPatience, message: string, nowMs: number): PlanNext {
  const notFound = patience.notFound + 1
  const sinceMs = patience.notFound === 0 ? nowMs : patience.sinceMs
  if (notFound >= NOT_FOUND_ANSWERS && nowMs - sinceMs >= NOT_FOUND_MS) return { kind: 'removed', message }
  return { kind: 'wait', ms: NOT_FOUND_RETRY_MS, patience: { notFound, sinceMs } }
}

export interface TunnelPatience {
  readonly refusals: number
  readonly breaks: number
}

export interface TunnelNext {
  readonly waitMs: number
  readonly patience: TunnelPatience
  /** The next time this node introduces itself. */
  readonly isToRegister: boolean
  /** Worth a word; the same is not said again and again. */
  readonly isWorthSaying: boolean
}

/** `livedMs`: how long the tunnel was open. */
export function afterTunnel({ refusals, breaks }: TunnelPatience, end: TunnelEnd, livedMs: number): TunnelNext {
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
