/** How much of a collection there is in bytes, remembered with its runs. */
import { prefixEnd } from '#storage/backend.ts'
import type { Run } from '#storage/ordered-tree.ts'
import type { Collection } from '#storage/watch-cache/collection.ts'

import type { Entry } from './entry.ts'

/** Remembered with the run. */
export function bytesOfRun({ values, memo }: Run<Entry>): number {
  const known = memo.get('bytes')
  if (typeof known === 'number') return known
  const bytes = bytesOfEntries(values)
  memo.set('bytes', bytes)
  return bytes
}

export function bytesOfEntries(entries: readonly Entry[]): number {
  return entries.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** Of about so many objects the size is looked at: those of one kind are mostly of one size. */
const SAMPLE = 100

/** Of one object, about. */
export function averageBytes({ state, prefix }: Collection<Entry>): number {
  let count = 0
  let bytes = 0
  for (const run of state.runs(prefix, prefixEnd(prefix))) {
    bytes += bytesOfRun(run)
    count += run.values.length
    if (count >= SAMPLE) break
  }
  return count === 0 ? 0 : bytes / count
}
