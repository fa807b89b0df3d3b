/** Parses the `resourceVersion` of a read and waits until the cache has that version. */
import type { Call } from '#component/requests/call.ts'
import type { Clock } from '#lib/clock.ts'
import { goQuote } from '#lib/go/text.ts'
import type { GroupResource } from '#meta/kind.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { badRequestError, failure, invalidError, tooLargeResourceVersionError } from '#meta/status-errors.ts'
import { fieldPath, verbatim } from '#meta/validation/field-path.ts'
import type { Revision } from '#storage/backend.ts'
import type { WatchCache } from '#storage/watch-cache/watch-cache.ts'

/** The maximum wait for a future version: another server may be ahead of this cache. */
const WAIT_MS = 3000

const MAX_UINT64 = 2n ** 64n - 1n

/** Undefined for no version. An invalid one is 500 without a reason, as upstream, with Go's text. */
export function parseVersion(text: string | undefined): Revision | undefined {
  const problem = problemOf(text)
  if (problem !== undefined) throw failure({ code: 500, message: problem })
  return text === undefined || text === '' ? undefined : Number(text)
}

/** The same for a list, which answers 400. */
export function parseListVersion(text: string | undefined): Revision | undefined {
  const problem = problemOf(text)
  if (problem !== undefined) throw badRequestError(`invalid resource version: ${problem}`)
  return parseVersion(text)
}

function problemOf(text = ''): string | undefined {
  const problem = syntaxOf(text)
  return problem === undefined ? undefined : `resourceVersion: Invalid value: ${goQuote(text)}: ${problem}`
}

/** Go's error text for an invalid version. */
function syntaxOf(text: string): string | undefined {
  const isNumber = /^\d*$/.test(text)
  if (isNumber && (text.length < 20 || BigInt(text) <= MAX_UINT64)) return undefined
  return `strconv.ParseUint: parsing ${goQuote(text)}: ${isNumber ? 'value out of range' : 'invalid syntax'}`
}

/** The version that a write expects; empty or 0 for any. Throws upstream's error for an invalid one. */
export function expectedVersion({ resourceVersion = '' }: ObjectMeta): string {
  const problem = syntaxOf(resourceVersion)
  if (problem !== undefined) throw failure({ code: 500, message: problem })
  return resourceVersion.replace(/^0+/, '')
}

/** Upstream's store has only the plural here and uses it as the kind. */
export function versionRequired({ group, resource }: GroupResource, name: string): Error {
  return invalidError({ group, kind: resource }, name, [
    fieldPath('metadata.resourceVersion').invalid(verbatim('0'), 'must be specified for an update'),
  ])
}

/** Waits until the cache has every acknowledged commit. It nearly always has; only otherwise a signal is created. */
export async function freshen(cache: WatchCache, call: Pick<Call, 'signal'>): Promise<void> {
  const revision = await cache.acknowledged()
  if (cache.revision < revision) await cache.waitFor(revision, call.signal)
}

/** Waits until the cache is at `revision` or later; throws 504 on timeout. */
export async function reach(cache: WatchCache, clock: Clock, revision: Revision, signal: AbortSignal): Promise<void> {
  if (cache.revision >= revision) return
  // The cache may only lag behind a backend that has the revision.
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
