/** Answers `GET /past/<from>..<to>/…` of an object or a collection: its changes between two moments, oldest first. */
import type { View } from '#apiserver/handlers/view.ts'
import type { Trail, WriteNote } from '#apiserver/trail/trail.ts'
import type { RequestInfo } from '#auth/request-info.ts'
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import type { LongHistory, PastEvent } from '#history/long-history.ts'
import type { Gap, KeyRange } from '#history/recorded-change.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { KubeObject } from '#meta/object.ts'
import { badRequestError } from '#meta/status-errors.ts'
import { type KeyValue, prefixEnd, type Revision } from '#storage/backend.ts'
import type { AtRest } from '#storage/encryption/at-rest.ts'

import { type PointInTime, pointOf, unreadable, type UnreadableRange } from './moments.ts'

/** Of the kind ChangeList in hyperkube.io/v1. */
export interface ChangeList {
  readonly kind: 'ChangeList'
  readonly apiVersion: 'hyperkube.io/v1'
  /** The part of the history that the list covers: it may begin later than the request. */
  readonly from: PointInTime
  readonly to: PointInTime
  /** The number of older changes that the limit left out. */
  readonly omitted: number
  /** Stretches whose changes are not known. Absent: none. */
  readonly gaps?: readonly UnreadableRange[]
  readonly items: readonly Change[]
}

export interface Change extends PointInTime {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  /** After the change; before it, if the object was deleted. */
  readonly object: KubeObject
  /** Before the change, if no other change in the list has it. */
  readonly oldObject?: KubeObject
  /** Absent: not known. */
  readonly by?: WriteNote
}

export interface ChangesOptions {
  readonly history: Pick<LongHistory, 'changes' | 'timeOf'>
  readonly atRest: Pick<AtRest, 'prepare'>
  /** Of the history. */
  readonly gaps: readonly Gap[]
  readonly trail: Trail
  /** The changes after it, up to and including `to`. */
  readonly from: Revision
  readonly to: Revision
}

const USUAL_LIMIT = 500
const MAX_LIMIT = 10_000

/** `view` is of a registry at any time that has the kind. Fails with `compacted` if the store has dropped the changes. */
export async function listChanges(call: Call, view: View, options: ChangesOptions): Promise<WholeAnswer> {
  const { history, trail, from, to } = options
  const limit = limitOf(call)
  const events: PastEvent[] = []
  let omitted = 0
  for await (const event of eventsOf(call, view, options)) {
    events.push(event)
    if (events.length > limit) omitted += events.splice(0, events.length - limit).length
  }
  const pointAt = (revision: Revision): PointInTime => pointOf(history, revision)
  const gaps = options.gaps.filter(({ after, until }) => after < to && until > from)
  const list: ChangeList = {
    kind: 'ChangeList',
    apiVersion: 'hyperkube.io/v1',
    from: pointAt(from),
    to: pointAt(to),
    omitted,
    ...(gaps.length > 0 && { gaps: gaps.map((gap) => unreadable(history, gap)) }),
    items: changesOf(events, {
      read: (item) => view.representation.objectOf(view.store.read(item)),
      pointAt,
      by: ({ modRevision, note }) =>
        trail.of(modRevision) ?? (note === undefined ? undefined : (JSON.parse(note) as WriteNote)),
    }),
  }
  return { status: 200, contentType: 'application/json', body: Buffer.from(encodeJson(list)) }
}

async function* eventsOf(
  { info, signal }: Call,
  view: View,
  { history, atRest, gaps, from, to }: ChangesOptions,
): AsyncGenerator<PastEvent> {
  const { start, end } = keysOf(info, view)
  const ending = info.name === '' ? '' : `/${info.name}`
  for (const part of knownParts(from, to, gaps))
    for await (const { events } of history.changes({ start, end, from: part.from + 1, through: part.to, signal })) {
      const found = events.filter(({ key }) => key.endsWith(ending))
      await atRest.prepare(
        found.flatMap(({ value, previous }) => [value, ...(previous === undefined ? [] : [previous.value])]),
      )
      yield* found
    }
}

/** Of an object or a collection. A list in all namespaces can select a name by its field, and has the keys of all names. */
export function keysOf({ name, namespace }: RequestInfo, { store, resource }: View): KeyRange {
  const { prefix } = store.collection
  const isOne = name !== '' && (namespace !== '' || !resource.kind.namespaced)
  const folder = namespace === '' ? prefix : `${prefix}${namespace}/`
  const start = isOne ? store.keyOf(resource.kind.namespaced ? namespace : '', name) : folder
  return { start, end: isOne ? `${start}\0` : prefixEnd(start) }
}

/** The changes after `from` up to `to` without those in gaps. */
function knownParts(
  from: Revision,
  to: Revision,
  gaps: readonly Gap[],
): { readonly from: Revision; readonly to: Revision }[] {
  const starts = [from, ...gaps.map(({ until }) => Math.max(from, until))]
  const ends = [...gaps.map(({ after }) => Math.min(to, after)), to]
  return starts.map((start, at) => ({ from: start, to: ends[at] as Revision })).filter((part) => part.from < part.to)
}

function changesOf(
  events: readonly PastEvent[],
  {
    read,
    pointAt,
    by,
  }: {
    readonly read: (item: KeyValue) => KubeObject
    readonly pointAt: (revision: Revision) => PointInTime
    readonly by: (event: PastEvent) => WriteNote | undefined
  },
): Change[] {
  const seen = new Set<string>()
  return events.map((event): Change => {
    const { key, type, previous, modRevision } = event
    const isNew = previous === undefined
    const hasOld = !isNew && type === 'put' && !seen.has(key)
    seen.add(key)
    const note = by(event)
    return {
      ...pointAt(modRevision),
      type: type === 'delete' ? 'DELETED' : isNew ? 'ADDED' : 'MODIFIED',
      object: read(type === 'delete' ? (previous as KeyValue) : event),
      ...(hasOld && { oldObject: read(previous) }),
      ...(note !== undefined && { by: note }),
    }
  })
}

function limitOf({ query }: Call): number {
  const text = query.get('limit') ?? String(USUAL_LIMIT)
  const limit = Number(text)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw badRequestError(`the limit "${text}" is not a number from 1 to ${MAX_LIMIT}`)
  return limit
}
