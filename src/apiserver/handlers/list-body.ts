/**
 * The bytes of a list, put together from runs of items. What some neighbours in the collection have for a selection, in
 * one form, is remembered with them and so valid until one of them changes. Only what goes around the
 * items (the list's own version) is new each time, compressed lists included.
 */
import { deflatePart, type GzipPart, joinGzip, storedPart } from '#lib/gzip-parts.ts'
import { SLICE_MS, turn } from '#lib/slices.ts'
import type { ListMeta } from '#meta/object.ts'
import { prefixEnd } from '#storage/backend.ts'
import type { Run as Neighbours } from '#storage/ordered-tree.ts'

import type { ItemForm } from '../answers/representation.ts'
import type { Call, WholeAnswer } from '../call.ts'
import type { ByteMemo } from '../registry/byte-memo.ts'
import type { Entry } from '../registry/entry.ts'
import type { Selection } from './selection.ts'
import type { View } from './view.ts'

/** Items in a row, each with what separates it from the next. */
interface Run {
  readonly bytes: Buffer
  /** Without the last separator. Made when first asked for; everybody who asks meanwhile waits for the same. */
  gzip?: Promise<GzipPart>
}

/** From here on upstream compresses for those who ask. */
const GZIP_FROM_BYTES = 128 << 10
/** Up to here pieces are put together, to leave in one write with the head; beyond, copying them would cost more. */
const WHOLE_UP_TO_BYTES = 32 << 10
/** Where a run ends: the pieces that were measured as best. */
const RUN_BYTES = 256 << 10
/** A quarter of a megabyte: a few milliseconds, even where it is made anew. */
const RUNS_AT_A_TIME = 1
/** A list that is larger does not push all others out: what goes beyond is made anew each time. */
const KEPT_OF_LIST_BYTES = 8 << 20

/**
 * The runs of everything selected, as it is when this is called. `prefix` is that of all keys that can be. What was made
 * before takes no time; others have their turn while the rest is made.
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
    await turn()
    begunMs = clock.elapsed()
  }
  return runs
}

/** Without a selection: all of them, whatever the list is that they are part of. */
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
  // Half as much again for their gzip, which is remembered with them.
  return memos?.keep(memo, name, { value: runs, bytes: bytesOf(runs) * 1.5 }) ?? runs
}

/** Of any number of entries, with turns for others in between. */
export async function runsOf(entries: readonly Entry[], form: ItemForm): Promise<Run[]> {
  const runs: Run[] = []
  for (const part of partsOf(entries)) {
    if (runs.length > 0 && runs.length % RUNS_AT_A_TIME === 0) await turn()
    runs.push({ bytes: form.encode(part) })
  }
  return runs
}

function runsNow(entries: readonly Entry[], form: ItemForm): Run[] {
  return Array.from(partsOf(entries), (part) => ({ bytes: form.encode(part) }))
}

/** Pages of large objects are cut up: what is sent, compressed and waited for at a time stays small. */
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
  /** None of them empty. */
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

/** Of any number of texts (latin1) in a row, put together a few at a time, with turns for others in between. */
export async function answerOfTexts(call: Call, contentType: string, texts: readonly string[]): Promise<WholeAnswer> {
  const pieces: Buffer[] = []
  let start = 0
  let size = 0
  for (const [at, text] of texts.entries()) {
    size += text.length
    if (size < RUN_BYTES && at < texts.length - 1) continue
    if (pieces.length > 0 && pieces.length % RUNS_AT_A_TIME === 0) await turn()
    pieces.push(Buffer.from(texts.slice(start, at + 1).join(''), 'latin1'))
    start = at + 1
    size = 0
  }
  const isLarge = pieces.length > 1 || (pieces[0]?.length ?? 0) > GZIP_FROM_BYTES
  if (!isLarge || !acceptsGzip(call)) return answerOf(pieces, contentType)
  const parts = await Promise.all(pieces.map((piece) => deflatePart(piece)))
  return { ...answerOf(joinGzip(parts), contentType), headers: GZIP_HEADERS }
}

const GZIP_HEADERS = { 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' }

function gzipOf(run: Run, separatorBytes: number): Promise<GzipPart> {
  run.gzip ??= deflatePart(run.bytes.subarray(0, run.bytes.length - separatorBytes))
  return run.gzip
}

function answerOf(pieces: Buffer[], contentType: string): WholeAnswer {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const body = length <= WHOLE_UP_TO_BYTES ? Buffer.concat(pieces, length).toString('latin1') : handOver(pieces)
  return { status: 200, contentType, body, length }
}

/** What is sent is let go of, so that a slow reader holds only what it has yet to read. */
function* handOver(pieces: Buffer[]): Generator<Buffer, void, undefined> {
  for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) yield piece
}

/** Any other answer, compressed when it is large and the client asks for it. */
export async function compressed(call: Call, answer: WholeAnswer): Promise<WholeAnswer> {
  const { body } = answer
  if (!(typeof body === 'string' || Buffer.isBuffer(body))) return answer
  if (body.length <= GZIP_FROM_BYTES || !acceptsGzip(call)) return answer
  const part = await deflatePart(typeof body === 'string' ? Buffer.from(body, 'latin1') : body)
  return { ...answer, body: Buffer.concat(joinGzip([part])), headers: { ...answer.headers, ...GZIP_HEADERS } }
}

/** By upstream's simple rule: the word itself, without a quality. */
export function acceptsGzip(call: Call): boolean {
  const accepted = call.header('accept-encoding')
  return accepted !== '' && accepted.split(',').some((coding) => coding.trim() === 'gzip')
}
