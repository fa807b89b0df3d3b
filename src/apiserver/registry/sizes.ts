/** Estimates the size in bytes of collections and of writes, to decide when work must yield. */
import { prefixEnd } from '#storage/backend.ts'
import type { Run } from '#storage/ordered-tree.ts'
import type { Collection } from '#storage/watch-cache/collection.ts'

import type { Entry } from './entry.ts'

/** Cached with the run. */
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

interface Average {
  readonly count: number
  readonly bytes: number
  /** How often the estimate may still be reused. */
  uses: number
}

const averages = new WeakMap<Collection<Entry>, Average>()
/** A complete measurement is repeated after so many uses, and when the number of objects changes by an eighth. */
const USES = 1000

/** The approximate size of one object. */
export function averageBytes(collection: Collection<Entry>): number {
  const { size, state, prefix } = collection
  const known = averages.get(collection)
  if (known !== undefined && known.uses-- > 0 && Math.abs(size - known.count) * 8 <= known.count) return known.bytes
  let bytes = 0
  for (const run of state.runs(prefix, prefixEnd(prefix))) bytes += bytesOfRun(run)
  const average = { count: size, bytes: size === 0 ? 0 : bytes / size, uses: USES }
  averages.set(collection, average)
  return average.bytes
}

/** From this size on a step of a write takes a few milliseconds. */
const LARGE_BYTES = 64 << 10

/** True if the steps of a write must yield in between. */
export function isLarge({ bodyBytes = 0 }: { readonly bodyBytes?: number | undefined }, current?: Entry): boolean {
  return bodyBytes + (current?.bytes ?? 0) > LARGE_BYTES
}
