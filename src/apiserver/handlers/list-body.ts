/**
 * Builds the response body of a list from encoded runs of consecutive items. The encoding of a run is cached until one
 * of its items changes; only the list's metadata is encoded for each request.
 */
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import { deflatePart, type GzipPart, joinGzip, storedPart } from '#lib/files/gzip-parts.ts'
import { SLICE_MS, yieldToEventLoop } from '#lib/time-slicing.ts'
import type { ListMeta } from '#meta/object.ts'
import { prefixEnd } from '#storage/backend.ts'
import type { Run as Neighbours } from '#storage/ordered-tree.ts'

import { acceptsGzip, GZIP_FROM_BYTES, GZIP_HEADERS } from '../answers/gzip.ts'
import type { ByteMemo } from '../registry/byte-memo.ts'
import type { Entry } from '../registry/entry.ts'
import type { ItemForm } from '../registry/representation.ts'
import type { Selection } from './selection.ts'
import type { View } from './view.ts'

/** Consecutive items, each followed by the separator. */
interface Run {
  readonly bytes: Buffer
  /** Without the last separator. Made on demand; concurrent callers share one promise. */
  gzip?: Promise<GzipPart>
}

/** Pieces up to this size are joined with the head into one write; beyond, copying would cost more. */
const WHOLE_UP_TO_BYTES = 32 << 10
/** The end of a run: the size that was measured as best. */
const RUN_BYTES = 256 << 10
/** A quarter of a megabyte takes a few milliseconds to encode. */
const RUNS_AT_A_TIME = 1
/** A larger list must not evict all others: the excess is encoded again each time. */
const KEPT_OF_LIST_BYTES = 8 << 20

/**
 * The runs of all selected entries at the time of the call. `prefix` is the common key prefix. Cached runs take no
 * time; encoding others yields in between.
 */
export async function selectedRuns(view: View, selection: Selection, form: ItemForm, prefix: string): Promise<Run[]> {
  const { services, store } = view
  const { clock } = services
  let begunMs = clock.elapsed()
  const isRepeated = services.memos.isRepeated(`${prefix} ${form.name} ${selection.id}`)
  const runs: Run[] = []
  let size = 0
  for (const neighbours of store.collection.state.runs(prefix, prefixEnd(prefix))) {
    const { keys } = neighbours
    const isWhole = !selection.hasSelectors && keys[0]?.startsWith(prefix) && keys.at(-1)?.startsWith(prefix)
    const memos = isRepeated && size < KEPT_OF_LIST_BYTES ? services.memos : undefined
    const own = runsOfNeighbours(neighbours, form, isWhole ? undefined : selection, memos)
    size += bytesOf(own)
    runs.push(...own)
    if (clock.elapsed() - begunMs < SLICE_MS) continue
    await yieldToEventLoop()
    begunMs = clock.elapsed()
  }
  return runs
}

/** Without a selection: the runs are shared by all lists. */
function runsOfNeighbours(
  { values: entries, memo }: Neighbours<Entry>,
  form: ItemForm,
  selection: Selection | undefined,
  memos: ByteMemo | undefined,
): readonly Run[] {
  const name = selection === undefined ? form.name : `${form.name} ${selection.id}`
  const known = memos?.get<readonly Run[]>(memo, name)
  if (known !== undefined) return known
  const runs = runsNow(selection === undefined ? entries : entries.filter((entry) => selection.matches(entry)), form)
  // Half as much again for their gzip, which is cached with them.
  return memos?.keep(memo, name, { value: runs, bytes: bytesOf(runs) * 1.5 }) ?? runs
}

/** Sums over any number of entries, yielding in between. */
export async function runsOf(entries: readonly Entry[], form: ItemForm): Promise<Run[]> {
  const runs: Run[] = []
  for (const part of partsOf(entries)) {
    if (runs.length > 0 && runs.length % RUNS_AT_A_TIME === 0) await yieldToEventLoop()
    runs.push({ bytes: form.encode(part) })
  }
  return runs
}

function runsNow(entries: readonly Entry[], form: ItemForm): Run[] {
  return Array.from(partsOf(entries), (part) => ({ bytes: form.encode(part) }))
}

/** Splits pages of large objects, so that each write and compression stays small. */
function* partsOf(entries: readonly Entry[]): Generator<readonly Entry[]> {
  let start = 0
  let size = 0
  for (const [at, { bytes }] of entries.entries()) {
    size += bytes
    if (size < RUN_BYTES && at < entries.length - 1) continue
    yield entries.slice(start, at + 1)
    start = at + 1
    size = 0
  }
}

function bytesOf(runs: readonly Run[]): number {
  return runs.reduce((sum, { bytes }) => sum + bytes.length, 0)
}

export interface ListBody {
  readonly contentType: string
  readonly form: ItemForm
  readonly metadata: ListMeta
  /** Never yields empty pieces. */
  readonly runs: readonly Run[]
}

export async function listAnswer(call: Call, { contentType, form, metadata, runs }: ListBody): Promise<WholeAnswer> {
  const separatorBytes = runs.length === 0 ? 0 : form.separatorBytes
  const itemBytes = bytesOf(runs) - separatorBytes
  const { head, tail } = form.frame(metadata, itemBytes)
  const length = head.length + itemBytes + tail.length
  if (length > GZIP_FROM_BYTES && acceptsGzip(call)) {
    const items = await Promise.all(runs.map((run) => gzipOf(run, form.separatorBytes)))
    const comma = storedPart(Buffer.from(','))
    const separated = items.flatMap((item, at) => (at === 0 || separatorBytes === 0 ? [item] : [comma, item]))
    const pieces = joinGzip([storedPart(head), ...separated, storedPart(tail)])
    return { ...answerOf(pieces, contentType), headers: GZIP_HEADERS }
  }
  const pieces = runs.map(({ bytes }, at) =>
    at === runs.length - 1 ? bytes.subarray(0, bytes.length - separatorBytes) : bytes,
  )
  return answerOf([head, ...pieces, tail], contentType)
}

/** Joins any number of latin1 texts a few at a time, yielding in between. */
export async function answerOfTexts(call: Call, contentType: string, texts: readonly string[]): Promise<WholeAnswer> {
  const pieces: Buffer[] = []
  let start = 0
  let size = 0
  for (const [at, text] of texts.entries()) {
    size += text.length
    if (size < RUN_BYTES && at < texts.length - 1) continue
    if (pieces.length > 0 && pieces.length % RUNS_AT_A_TIME === 0) await yieldToEventLoop()
    pieces.push(Buffer.from(texts.slice(start, at + 1).join(''), 'latin1'))
    start = at + 1
    size = 0
  }
  const isLarge = pieces.length > 1 || (pieces[0]?.length ?? 0) > GZIP_FROM_BYTES
  if (!isLarge || !acceptsGzip(call)) return answerOf(pieces, contentType)
  const parts = await Promise.all(pieces.map((piece) => deflatePart(piece)))
  return { ...answerOf(joinGzip(parts), contentType), headers: GZIP_HEADERS }
}

function gzipOf(run: Run, separatorBytes: number): Promise<GzipPart> {
  run.gzip ??= deflatePart(run.bytes.subarray(0, run.bytes.length - separatorBytes))
  return run.gzip
}

function answerOf(pieces: Buffer[], contentType: string): WholeAnswer {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const body = length <= WHOLE_UP_TO_BYTES ? Buffer.concat(pieces, length).toString('latin1') : handOver(pieces)
  return { status: 200, contentType, body, length }
}

/** Releases sent pieces, so that a slow reader keeps only the unread rest in memory. */
function* handOver(pieces: Buffer[]): Generator<Buffer, void, undefined> {
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) yield piece
}
