/** Backoff for nodes whose daemon pods fail: grows with each failure, and resets after a quiet period. */
import type { Clock } from '#lib/clock.ts'

export interface FailureBackoff {
  /** The time until the next pod may be created; 0: now, and it counts as a failure. */
  wait(key: string): number
}

const FIRST_MS = 1000
const MOST_MS = 15 * 60_000
/** The quiet period after which a node's backoff is dropped. */
const QUIET_MS = 2 * MOST_MS

export function createFailureBackoff(clock: Clock): FailureBackoff {
  const known = new Map<string, { readonly delayMs: number; readonly sinceMs: number }>()
  return {
    wait(key) {
      const nowMs = clock.elapsed()
      for (const [one, { sinceMs }] of known) {
        // The oldest come first.
        if (nowMs - sinceMs <= QUIET_MS) break
        known.delete(one)
      }
      const last = known.get(key)
      if (last !== undefined && nowMs - last.sinceMs < last.delayMs) return last.delayMs
      known.delete(key)
      known.set(key, { delayMs: Math.min(MOST_MS, (last?.delayMs ?? FIRST_MS / 2) * 2), sinceMs: nowMs })
      return 0
    },
  }
}
