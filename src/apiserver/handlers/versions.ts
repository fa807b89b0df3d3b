/** What a client's `resourceVersion` asks of a read, and waiting until the cache can answer it. */
import type { Clock } from '#lib/clock.ts'
import { badRequestError, tooLargeResourceVersionError } from '#meta/status-errors.ts'
import type { Revision } from '#storage/backend.ts'
import type { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import type { Call } from '../call.ts'

/** How long a version from the future may take to arrive: another server may be ahead of our cache, not by more. */
const WAIT_MS = 3000

/** Throws 400 with Go's words for what is not a number. Undefined for no version. */
export function parseVersion(text: string | undefined): Revision | undefined {
  if (text === undefined || text === '') return undefined
  if (!/^\d+$/.test(text))
    throw badRequestError(`Invalid value: "${text}": strconv.ParseUint: parsing "${text}": invalid syntax`)
  return Number(text)
}

/** Waits until the cache has everything acknowledged so far, which it nearly always has: only else is a signal made. */
export async function freshen(cache: WatchCache, call: Pick<Call, 'signal'>): Promise<void> {
  const revision = await cache.acknowledged()
  if (cache.revision < revision) await cache.waitFor(revision, call.signal)
}

/** Waits until the cache is at `revision` or later; 504 when it does not get there. */
export async function reach(cache: WatchCache, clock: Clock, revision: Revision, signal: AbortSignal): Promise<void> {
  if (cache.revision >= revision) return
  // The cache may only lag behind a backend that is there already.
  await cache.fresh(signal)
  if (cache.revision >= revision) return
  const limit = new AbortController()
  const timer = clock.after(WAIT_MS, () => limit.abort(), { background: true })
  try {
    await cache.waitFor(revision, AbortSignal.any([signal, limit.signal]))
  } catch {
    throw tooLargeResourceVersionError(revision, cache.revision, 1)
  } finally {
    timer.cancel()
  }
}
