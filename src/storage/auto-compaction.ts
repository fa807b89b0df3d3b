/**
 * Compacts the store's history periodically, except for a recent window. The times of revisions are not stored, so after
 * a restart nothing is compacted until a whole window has passed.
 */
import { every, type Clock, type Timer } from '#lib/clock.ts'

import type { Revision } from './backend.ts'

export interface AutoCompactionOptions {
  readonly clock: Clock
  /** The minimum of history; at most a tenth more is kept. */
  readonly windowMs: number
  /** The newest revision that this process knows. */
  readonly revision: () => Revision
  /** Compacts history before the revision. Must not throw. */
  readonly compact: (revision: Revision) => void
}

/** Upstream's watch cache and etcd compaction use five minutes: clients that were away longer list again. */
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
