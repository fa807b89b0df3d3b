/** Answers `GET /past/<from>..<to>/…` of an object or a collection: its changes between two moments, oldest first. */
import type { View } from '#apiserver/handlers/view.ts'
import type { Trail, WriteNote } from '#apiserver/trail/trail.ts'
import type { Call, WholeAnswer } from '#component/requests/call.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { KubeObject } from '#meta/object.ts'
import { badRequestError } from '#meta/status-errors.ts'
import { type Backend, type KeyValue, prefixEnd, type Revision, type StorageEvent } from '#storage/backend.ts'

import { type PointInTime, pointOf } from './moments.ts'

/** Of the kind ChangeList in hyperkube.io/v1. */
export interface ChangeList {
  readonly kind: 'ChangeList'
  readonly apiVersion: 'hyperkube.io/v1'
  /** The part of the history that the list covers: it may begin later than the request. */
  readonly from: PointInTime
  readonly to: PointInTime
  /** The number of older changes that the limit left out. */
  readonly omitted: number
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
  readonly backend: Pick<Backend, 'watch' | 'timeOf'>
  readonly trail: Trail
  /** The changes after it, up to and including `to`. */
  readonly from: Revision
  readonly to: Revision
}

const USUAL_LIMIT = 500
const MAX_LIMIT = 10_000

/** `view` is of a registry at any time that has the kind. Fails with `compacted` if the store has dropped the changes. */
export async function listChanges(
  call: Call,
  view: View,
  { backend, trail, from, to }: ChangesOptions,
): Promise<WholeAnswer> {
  const limit = limitOf(call)
  const events: StorageEvent[] = []
  let omitted = 0
  for await (const event of eventsOf(call, view, { backend, trail, from, to })) {
    events.push(event)
    if (events.length > limit) omitted += events.splice(0, events.length - limit).length
  }
  const pointAt = (revision: Revision): PointInTime => pointOf(backend, revision)
  const list: ChangeList = {
    kind: 'ChangeList',
    apiVersion: 'hyperkube.io/v1',
    from: pointAt(from),
    to: pointAt(to),
    omitted,
    items: changesOf(events, {
      read: (item) => view.representation.objectOf(view.store.read(item)),
      pointAt,
      by: (revision) => trail.of(revision),
    }),
  }
  return { status: 200, contentType: 'application/json', body: Buffer.from(encodeJson(list)) }
}

async function* eventsOf(
  { info, signal }: Call,
  { store, resource }: View,
  { backend, from, to }: ChangesOptions,
): AsyncGenerator<StorageEvent> {
  if (from >= to) return
  const { prefix } = store.collection
  // A list in all namespaces can select a name by its field.
  const isOne = info.name !== '' && (info.namespace !== '' || !resource.kind.namespaced)
  const folder = info.namespace === '' ? prefix : `${prefix}${info.namespace}/`
  const start = isOne ? store.keyOf(resource.kind.namespaced ? info.namespace : '', info.name) : folder
  const end = isOne ? `${start}\0` : prefixEnd(start)
  const ending = info.name === '' ? '' : `/${info.name}`
  for await (const { events } of backend.watch({ start, end, from: from + 1, through: to, signal }))
    yield* events.filter(({ key }) => key.endsWith(ending))
}

function changesOf(
  events: readonly StorageEvent[],
  {
    read,
    pointAt,
    by,
  }: {
    readonly read: (item: KeyValue) => KubeObject
    readonly pointAt: (revision: Revision) => PointInTime
    readonly by: (revision: Revision) => WriteNote | undefined
  },
): Change[] {
  const seen = new Set<string>()
  return events.map((event): Change => {
    const { key, type, previous, modRevision } = event
    const isNew = previous === undefined
    const hasOld = !isNew && type === 'put' && !seen.has(key)
    seen.add(key)
    const note = by(modRevision)
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
