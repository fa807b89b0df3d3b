/** What a client's `resourceVersion` asks of a read, and waiting until the cache can answer it. */
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go-text.ts'
import type { GroupResource } from '#meta/kind.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { badRequestError, failure, invalidError, tooLargeResourceVersionError } from '#meta/status-errors.ts'
import { invalid, verbatim } from '#meta/validation/field-error.ts'
import type { Revision } from '#storage/backend.ts'
import type { WatchCache } from '#storage/watch-cache/watch-cache.ts'

import type { Call } from '../call.ts'

/** How long a version from the future may take to arrive: another server may be ahead of our cache, not by more. */
const WAIT_MS = 3000

const MAX_UINT64 = 2n ** 64n - 1n

/** Undefined for no version. What is none is 500 without a reason, as upstream has it, in Go's words. */
export function parseVersion(text: string | undefined): Revision | undefined {
  const problem = problemOf(text)
  if (problem !== undefined) throw failure({ code: 500, message: problem })
  return text === undefined || text === '' ? undefined : Number(text)
}

/** The same of a list, which answers 400. */
export function parseListVersion(text: string | undefined): Revision | undefined {
  const problem = problemOf(text)
  if (problem !== undefined) throw badRequestError(`invalid resource version: ${problem}`)
  return parseVersion(text)
}

function problemOf(text = ''): string | undefined {
  const problem = syntaxOf(text)
  return problem === undefined ? undefined : `resourceVersion: Invalid value: ${goQuote(text)}: ${problem}`
}

/** Go's complaint about what is no version. */
function syntaxOf(text: string): string | undefined {
  const isNumber = /^\d*$/.test(text)
  if (isNumber && (text.length < 20 || BigInt(text) <= MAX_UINT64)) return undefined
  return `strconv.ParseUint: parsing ${goQuote(text)}: ${isNumber ? 'value out of range' : 'invalid syntax'}`
}

/** The version that a write expects; empty for any, which 0 means too. Throws what upstream does for one that is none. */
export function expectedVersion({ resourceVersion = '' }: ObjectMeta): string {
  const problem = syntaxOf(resourceVersion)
  if (problem !== undefined) throw failure({ code: 500, message: problem })
  return resourceVersion.replace(/^0+/, '')
}

/** Upstream's store knows only the plural at this point, and says it in the kind's place. */
export function versionRequired({ group, resource }: GroupResource, name: string): Error {
  return invalidError({ group, kind: resource }, name, [
    invalid('metadata.resourceVersion', verbatim('0'), 'must be specified for an update'),
  ])
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
