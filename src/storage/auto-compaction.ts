/**
 * Keeps a window of history and lets go of what is older. Time is measured from when this process saw a revision, so
 * after a restart the history from before it stays for one more window.
 */
import { every, type Clock, type Timer } from '#lib/clock.ts'

import type { Revision } from './backend.ts'

export interface AutoCompactionOptions {
  readonly clock: Clock
  /** At least so much history is kept; at most a tenth more. */
  readonly windowMs: number
  /** The newest revision, as this process knows it. */
  readonly revision: () => Revision
  /** Must not throw; forgets what is before the revision. */
  readonly compact: (revision: Revision) => void
}

/** Upstream's watch cache and etcd compaction work with five minutes: clients that were away longer list anew. */
export const HISTORY_WINDOW_MS: number = 5 * 60 * 1000

export function createAutoCompaction(options: AutoCompactionOptions): Timer {
  const { clock, windowMs } = options
  const marks: { readonly atMs: number; readonly revision: Revision }[] = []
  const mark = (): void => void marks.push({ atMs: clock.elapsed(), revision: options.revision() })
  mark()
  return every(clock, windowMs / 10, () => {
    const due = clock.elapsed() - windowMs
    let target: Revision | undefined
    while (marks[0] !== undefined && marks[0].atMs <= due) target = marks.shift()?.revision
    mark()
    if (target !== undefined && target > 0) options.compact(target)
  })
}
