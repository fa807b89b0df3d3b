/**
 * GET of a collection: returns a list. It is consistent by default; at an older revision if the client asks for one or
 * continues a paged list. Older states come from the cache within its window, and from the backend beyond it.
 */
import type { Answer, Call, WholeAnswer } from '#component/requests/call.ts'
import type { Form } from '#component/requests/response-form.ts'
import type { Clock } from '#lib/clock.ts'
import { walkInSlices } from '#lib/time-slicing.ts'
import { contentTypeOf } from '#meta/codec/negotiate.ts'
import type { ListMeta } from '#meta/object.ts'
import { invalidOptionsError, type ListOptions, listOptionsQuery, validateListOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { badRequestError, failure, resourceExpiredError } from '#meta/status-errors.ts'
import { prefixEnd, type Revision, StorageError } from '#storage/backend.ts'
import { boundsOf } from '#storage/watch-cache/collection.ts'

import type { Entry } from '../registry/entry.ts'
import { checkReadable, storageFailure } from '../registry/errors.ts'
import { bytesOfEntries, bytesOfRun } from '../registry/sizes.ts'
import type { VersionConverter } from '../registry/version-converter.ts'
import { answerWithList, isTable, refuseOneObject } from './answers.ts'
import { decodeContinue, encodeContinue } from './continue-token.ts'
import { listAnswer, selectedRuns } from './list-body.ts'
import { type Selection, selectionOf } from './selection.ts'
import { freshen, parseListVersion, reach } from './versions.ts'
import { formFor, type View } from './view.ts'

export async function listObjects(call: Call, view: View): Promise<Answer> {
  const form = formFor(call, view, 'list')
  const options = listOptionsOf(call, view)
  const selection = selectionOf(view, call.info.namespace, options)
  const start = await startOf(call, view, options)
  refuseOneObject(view, form)
  countList(view)
  // Remotely converted objects are converted slice by slice, and never cached as a whole.
  if (view.representation.converter?.isRemote === true)
    return makeList(call, view, form, { selection, start, isGiant: true })
  const bytes = bytesOf(view, selection, prefixOf(call, view), start)
  const isGiant = bytes > GIANT_BYTES || isHeavySelection(selection)
  if (bytes <= SMALL_BYTES) return makeList(call, view, form, { selection, start, isGiant })
  const leave = await view.services.answers.reserve(call.user.name, bytes)
  try {
    call.signal.throwIfAborted()
    const answer = await makeList(call, view, form, { selection, start, isGiant })
    return { ...answer, sent: leave }
  } catch (error) {
    leave()
    throw error
  }
}

function countList({ services, resource: { kind } }: View): void {
  services.metrics.family('apiserver_cache_list_total').labels(kind.group, kind.plural, '').inc()
}

/** Lists up to this size need no reservation. */
const SMALL_BYTES = 8 << 20
/** Larger lists are encoded in slices and not cached. */
const GIANT_BYTES = 16 << 20
const HEAVY_SELECTOR_CHARS = 2048
/** Pages of usual size are small; only larger limits are measured. */
const USUAL_LIMIT = 1000

/** An upper estimate of the memory that the list needs until its client has read it. */
function bytesOf({ store }: View, selection: Selection, prefix: string, { limit }: Start): number {
  if (limit > 0 && limit <= USUAL_LIMIT) return 0
  const runs = [...store.collection.state.runs(prefix, prefixEnd(prefix))]
  const atMost = runs.reduce((sum, run) => sum + bytesOfRun(run), 0)
  if (atMost <= SMALL_BYTES || !selection.hasSelectors || isHeavySelection(selection)) return atMost
  const selected = runs.map(({ values }) => bytesOfEntries(values.filter((entry) => selection.matches(entry))))
  return selected.reduce((sum, bytes) => sum + bytes, 0)
}

/** Selectors with thousands of terms match slowly, so they are evaluated once and in slices. */
function isHeavySelection({ id }: Selection): boolean {
  return id.length > HEAVY_SELECTOR_CHARS
}

async function makeList(
  call: Call,
  view: View,
  form: Form,
  { selection, start, isGiant }: { readonly selection: Selection; readonly start: Start; readonly isGiant: boolean },
): Promise<WholeAnswer> {
  const items = isTable(form) ? undefined : view.representation.itemForm(form)
  if (items !== undefined && !isGiant && isWhole(start, view)) {
    const metadata = { resourceVersion: String(view.services.cache.revision) }
    const runs = await selectedRuns(view, selection, items, prefixOf(call, view))
    return listAnswer(call, { contentType: contentTypeOf(form.negotiated), form: items, metadata, runs })
  }
  return answerWithList(call, view, { ...(await selectFrom(call, view, { selection, start })), form })
}

/** The complete current state: no page can be left for later. */
function isWhole({ revision, after, limit }: Start, { store }: View): boolean {
  return revision === undefined && after === undefined && (limit === 0 || limit >= store.collection.size)
}

/** The common prefix of the list's keys. */
export function prefixOf({ info }: Call, { store }: View): string {
  const { prefix } = store.collection
  return info.namespace === '' ? prefix : `${prefix}${info.namespace}/`
}

/** Parses and checks the options; throws 422 for contradictions. */
export function listOptionsOf(call: Call, { services }: Pick<View, 'services'>): ListOptions {
  if (call.query.size === 0) return NO_OPTIONS
  const options = decodeQuery(listOptionsQuery, call.query)
  const errors = validateListOptions(options, services.isEnabled('WatchList'))
  if (errors.length > 0) throw invalidOptionsError('ListOptions', errors)
  return options
}

const NO_OPTIONS: ListOptions = {}

export interface Selected {
  readonly entries: readonly Entry[]
  readonly metadata: ListMeta
}

/** The objects of a deletecollection, with the list's metadata. `selection` is that of `options`. */
export async function selectEntries(
  call: Call,
  view: View,
  { options, selection }: { readonly options: ListOptions; readonly selection: Selection },
): Promise<Selected> {
  const start = await startOf(call, view, options)
  return selectFrom(call, view, { selection, start })
}

async function selectFrom(
  call: Call,
  view: View,
  { selection, start }: { readonly selection: Selection; readonly start: Start },
): Promise<Selected> {
  const { collection } = view.store
  const after = start.after === undefined ? {} : { after: collection.prefix + start.after }
  const bounds = boundsOf({ prefix: prefixOf(call, view), ...after })
  const revision = start.revision ?? view.services.cache.revision
  const isOnce = start.revision === undefined && start.limit === 0
  const state = isOnce ? collection.state : collection.stateAt(revision)
  const source: Source =
    state === undefined
      ? new BackendSource(view, { ...bounds, revision }, { ...start, selection })
      : { slices: state.slices(bounds.start, bounds.end), countAfter: (key) => state.count(`${key}\0`, bounds.end) }
  const { clock } = view.services
  const { converter } = view.representation
  const shown =
    converter?.isRemote === true
      ? { slices: prepared(source.slices, converter), countAfter: (key: string) => source.countAfter(key) }
      : source
  return page(shown, selection, { limit: start.limit, revision, prefix: collection.prefix, clock })
}

async function* prepared(
  slices: Source['slices'],
  converter: VersionConverter,
): AsyncGenerator<readonly Entry[], void, undefined> {
  for await (const entries of slices) {
    await converter.prepare(entries)
    yield entries
  }
}

interface Start {
  /** Undefined: the current state. */
  readonly revision: Revision | undefined
  readonly after: string | undefined
  /** 0: no limit. */
  readonly limit: number
}

/** The revision and the key to start from, after waiting until the cache has it. */
async function startOf(call: Call, view: View, options: ListOptions): Promise<Start> {
  const start = await reachStart(call, view, options)
  const { store } = view
  checkReadable(store.collection, store.keyOf(call.info.namespace, ''))
  return start
}

async function reachStart(call: Call, view: View, options: ListOptions): Promise<Start> {
  const { services, store } = view
  const { cache, clock } = services
  const begunMs = clock.elapsed()
  const limit = Math.max(0, options.limit ?? 0)
  if (!store.collection.isLoaded) await store.collection.ready
  if (options.continue !== undefined) {
    const version = parseListVersion(options.resourceVersion)
    if (version !== undefined && version !== 0)
      throw badRequestError('specifying resource version is not allowed when using continue')
    const token = decodeContinue(options.continue)
    await freshen(cache, call)
    return { revision: token.revision < 0 ? undefined : token.revision, after: token.after, limit }
  }
  const version = parseListVersion(options.resourceVersion)
  if (version === undefined) {
    await freshen(cache, call)
    countWait(view, begunMs, true)
    return { revision: undefined, after: undefined, limit }
  }
  if (version === 0) return { revision: undefined, after: undefined, limit: 0 }
  await reach(cache, clock, version, call.signal)
  countWait(view, begunMs, false)
  const exact = options.resourceVersionMatch === 'Exact' || (options.resourceVersionMatch === undefined && limit > 0)
  return { revision: exact ? version : undefined, after: undefined, limit }
}

/** `isConsistent`: at the latest revision, not at a named one. There is no fallback to another way of reading. */
function countWait(
  { services: { metrics, clock }, resource: { kind } }: View,
  begunMs: number,
  isConsistent: boolean,
): void {
  const { group, plural } = kind
  const seconds = (clock.elapsed() - begunMs) / 1000
  metrics.family('apiserver_watch_cache_read_wait_seconds').labels(group, plural).observe(seconds)
  if (!isConsistent) return
  metrics.family('apiserver_watch_cache_consistent_read_total').labels(group, plural, 'true', 'false').inc()
}

/** The source of a list's objects. */
interface Source {
  readonly slices: Iterable<readonly Entry[]> | AsyncIterable<readonly Entry[]>
  /** The number of objects after the last one of `slices`. */
  countAfter(key: string): number
}

interface BackendRange {
  readonly start: string
  readonly end: string
  readonly revision: Revision
}

/** A state that the cache has dropped, read in pages from the backend. */
class BackendSource implements Source {
  readonly #view: View
  readonly #range: BackendRange
  readonly #start: Start
  readonly #partLimit: number
  /** The last page, and the number of objects from its first on. */
  #last: readonly Entry[] = []
  #count = 0

  constructor(view: View, range: BackendRange, { selection, ...start }: Start & { readonly selection: Selection }) {
    this.#view = view
    this.#range = range
    this.#start = start
    this.#partLimit = selection.hasSelectors ? Math.max(start.limit, USUAL_LIMIT) : start.limit
  }

  get slices(): AsyncIterable<readonly Entry[]> {
    return this.#read()
  }

  countAfter(key: string): number {
    return this.#count - 1 - this.#last.findIndex((entry) => entry.key === key)
  }

  async *#read(): AsyncGenerator<readonly Entry[], void, undefined> {
    const { store, services, resource } = this.#view
    for (let { start } = this.#range, more = true; more; start = `${this.#last.at(-1)?.key}\0`) {
      try {
        const part = await services.backend.range({ ...this.#range, start, limit: this.#partLimit })
        this.#last = part.items.map((stored) => store.read(stored))
        this.#count = part.count
        more = part.more
      } catch (cause) {
        throw rangeFailure(cause, resource, this.#start)
      }
      yield this.#last
    }
  }
}

function rangeFailure(cause: unknown, { kind }: View['resource'], { after }: Start): Error {
  if (!(cause instanceof StorageError) || cause.code !== 'compacted')
    return storageFailure(cause, { group: kind.group, resource: kind.plural })
  if (after === undefined) return resourceExpiredError('The resourceVersion for the provided list is too old.')
  return expiredContinue(after)
}

/** The first page's revision is compacted; the new token continues at the current one, which the client may accept. */
function expiredContinue(after: string): Error {
  const message =
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'
  const error = failure({ code: 410, reason: 'Expired', message })
  error.status.metadata = { continue: encodeContinue({ revision: -1, after }) }
  return error
}

interface PageTerms {
  readonly limit: number
  readonly revision: Revision
  readonly prefix: string
  readonly clock: Clock
}

async function page(
  source: Source,
  selection: Selection,
  { limit, revision, prefix, clock }: PageTerms,
): Promise<Selected> {
  const metadata: ListMeta = { resourceVersion: String(revision) }
  const entries: Entry[] = []
  const last = await walkInSlices(source.slices, clock, (entry) => {
    if (selection.matches(entry)) entries.push(entry)
    return limit === 0 || entries.length < limit
  })
  const remaining = last === undefined ? 0 : source.countAfter(last.key)
  if (last === undefined || remaining === 0) return { entries, metadata }
  metadata.continue = encodeContinue({ revision, after: last.key.slice(prefix.length) })
  if (!selection.hasSelectors) metadata.remainingItemCount = remaining
  return { entries, metadata }
}
