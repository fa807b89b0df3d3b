/**
 * Encodes watch events as frames in the form that a client requested. All watchers of one form share a frame, except
 * the first frame of a table.
 */
import { shareFrame, type SharedFrame } from '#lib/http/exchange.ts'
import type { JsonObject } from '#lib/json/value.ts'
import type { Negotiation } from '#meta/codec/negotiate.ts'
import { jsonWatchFrame, partialObject, protobufWatchFrame, type WatchEventType } from '#meta/codec/partial.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { initialEventsEnd } from '#meta/watch.ts'
import type { Revision } from '#storage/backend.ts'
import type { FilteredChange } from '#storage/watch-cache/readers.ts'
import type { Change, ChangeType } from '#storage/watch-cache/ring.ts'

import { bodyAt, type Entry } from '../registry/entry.ts'
import { columnsOf, type IncludedObject, rowObject, rowOf, tableObject } from './table.ts'
import type { View } from './view.ts'

/** A string is latin1: one character per byte. */
export type Frame = string | Buffer

export function asBuffer(frame: Frame | SharedFrame): Buffer {
  if (typeof frame === 'string') return Buffer.from(frame, 'latin1')
  return Buffer.isBuffer(frame) ? frame : frame.body
}

export function bytesOf(frame: Frame | SharedFrame): number {
  return typeof frame === 'string' || Buffer.isBuffer(frame) ? frame.length : frame.body.length
}

export class WatchFrames {
  readonly #view: View
  readonly #negotiated: Negotiation
  readonly #include: IncludedObject
  /** The cache key of a frame of this form. */
  readonly #names: Readonly<Record<ChangeType, string>>
  /** Only the first frame of a table watch contains the column definitions. */
  #columns: ReturnType<typeof columnsOf> | null

  constructor(view: View, negotiated: Negotiation, include: IncludedObject) {
    const { mediaType, as } = negotiated
    this.#view = view
    this.#negotiated = negotiated
    this.#include = include
    this.#columns = columnsOf(view.resource)
    const target = as === undefined ? '' : `${as.kind}:${as.version}:${as.omitsManagedFields === true}`
    const name = `${mediaType}:${target}:${apiVersionOf(view.representation.kind)}`
    this.#names = { ADDED: `${name}:ADDED`, MODIFIED: `${name}:MODIFIED`, DELETED: `${name}:DELETED` }
  }

  get #isTable(): boolean {
    return this.#negotiated.as?.kind === 'Table'
  }

  /** A deletion, or leaving the selection, shows the last state with the revision of the deletion. */
  change(type: ChangeType, change: Change<Entry>): Frame | SharedFrame {
    const entry = type === 'DELETED' ? change.previous : change.entry
    if (entry === undefined) throw new Error(`A change of type ${type} has no object`)
    if (this.#isTable) return this.#make(type, entry, change.revision)
    const { memos } = this.#view.services
    const known = memos.get<SharedFrame>(change.memo, this.#names[type])
    if (known !== undefined) return known
    const made = shareFrame(asBuffer(this.#make(type, entry, change.revision)))
    return memos.keep(change.memo, this.#names[type], { value: made, bytes: made.chunked.length })
  }

  /** Joins the frames of one batch. */
  changes(seen: readonly FilteredChange<Entry>[]): Frame | SharedFrame {
    const [first, ...others] = seen
    if (first === undefined) throw new Error('There is nothing to tell')
    if (others.length === 0) return this.change(first.type, first.change)
    const { memo } = seen.at(-1)?.change ?? first.change
    const name = seen.map(({ type, change }) => `${this.#names[type]}@${change.revision}`).join()
    const { memos } = this.#view.services
    const known = memos.get<SharedFrame>(memo, name)
    if (known !== undefined) return known
    const frames = seen.map(({ type, change }) => this.change(type, change))
    const joined = shareFrame(Buffer.concat(frames.map(asBuffer)))
    return this.#isTable ? joined : memos.keep(memo, name, { value: joined, bytes: joined.chunked.length })
  }

  /** An object that existed when the watch began. */
  initial(entry: Entry): Frame {
    return this.#make('ADDED', entry, entry.modRevision)
  }

  /** `end`: the bookmark that closes the initial events. */
  bookmark(revision: Revision, end: boolean): Frame {
    const annotations = end ? { annotations: { [initialEventsEnd]: 'true' } } : {}
    const metadata = { resourceVersion: String(revision), ...annotations }
    const { kind } = this.#view.representation
    const { as } = this.#negotiated
    const own: KubeObject = { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata }
    if (as === undefined) return this.#encode('BOOKMARK', own)
    if (!this.#isTable)
      return this.#encode('BOOKMARK', { kind: as.kind, apiVersion: `meta.k8s.io/${as.version}`, metadata })
    const object = rowObject({ include: this.#include, partial: as }, () => own)
    return this.#encode('BOOKMARK', this.#table({ cells: [], object }, revision))
  }

  error(status: object): Frame {
    return this.#encode('ERROR', status as KubeObject)
  }

  #make(type: ChangeType, entry: Entry, revision: Revision): Frame {
    const { representation, resource } = this.#view
    const { as, mediaType } = this.#negotiated
    const plain = as === undefined && mediaType === 'application/json'
    const isCurrent = revision === entry.modRevision
    if (plain && isCurrent) return jsonWatchFrame(type, `${representation.prefix}${representation.bodyOf(entry)}`)
    const isStored =
      representation.converter !== undefined || apiVersionOf(representation.kind) === apiVersionOf(resource.kind)
    if (plain && isStored)
      return jsonWatchFrame(type, `${representation.prefix}${bodyAt(representation.look(entry), revision)}`)
    if (as === undefined && isCurrent) return protobufWatchFrame(type, representation.envelopeOf(entry))
    return this.#encode(type, this.#shape(entry, revision))
  }

  #shape(entry: Entry, revision: Revision): KubeObject {
    const { representation, services } = this.#view
    const { as } = this.#negotiated
    const whole = representation.objectOf(entry)
    const object = { ...whole, metadata: { ...whole.metadata, resourceVersion: String(revision) } }
    if (as === undefined) return object
    if (this.#isTable) {
      const terms = { include: this.#include, partial: as, nowMs: services.clock.now() }
      return this.#table(rowOf(this.#view, entry, terms, object), revision)
    }
    return partialObject(object as unknown as JsonObject, as) as unknown as KubeObject
  }

  #table(row: ReturnType<typeof rowOf>, revision: Revision): KubeObject {
    const columns = this.#columns
    this.#columns = null
    return tableObject(columns, [row], { resourceVersion: String(revision) }, this.#negotiated.as?.version ?? 'v1')
  }

  #encode(type: WatchEventType, object: KubeObject): Frame {
    const bytes = this.#view.representation.encode(object, this.#negotiated, false)
    return typeof bytes === 'string' ? jsonWatchFrame(type, bytes.trimEnd()) : protobufWatchFrame(type, bytes)
  }
}
