/** How long an agent waits after what, and when it gives up. Pure. */
import type { PlanAnswer, TunnelEnd } from './server.ts'

const NOT_READY_MS = 2000
const FAILED_MS = 10_000
const RECONNECT_MS = 10_000
/** A virtual switch that is laid under the connection cuts it for seconds: nothing to talk about. */
const SILENT_RECONNECT_MS = 5000
const SILENT_RECONNECTS = 10
/** So often a server may not know this node; its own database may be on its way back. */
const NOT_FOUND_TOLERATED = 3
/** After so many refusals this node may be unknown, and registers again. */
const REFUSALS_TO_REGISTER = 3
/** A connection that has lasted so long was a good one. */
const GOOD_CONNECTION_MS = 60_000

export interface PlanPatience {
  /** How often in a row the server did not know this node. */
  readonly notFound: number
}

export type PlanNext =
  | { readonly kind: 'removed'; readonly message: string }
  | { readonly kind: 'wait'; readonly ms: number; readonly patience: PlanPatience }

/** `intervalMs` is what the plan that holds says. */
export function afterAnswer({ notFound }: PlanPatience, answer: PlanAnswer, intervalMs: number): PlanNext {
  const wait = (ms: number, count = 0): PlanNext => ({ kind: 'wait', ms, patience: { notFound: count } })
  switch (answer.kind) {
    case 'plan':
    case 'none':
      return wait(intervalMs)
    case 'not-ready':
      return wait(NOT_READY_MS)
    case 'not-found':
      return notFound >= NOT_FOUND_TOLERATED
        ? { kind: 'removed', message: answer.message }
        : wait(FAILED_MS, notFound + 1)
    case 'failed':
      // Says nothing about whether the node is known.
      return wait(FAILED_MS, notFound)
  }
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
