/** Commits objects of one resource to the backend and makes their cache entries. */
import type { JsonObject } from '#lib/json/value.ts'
import { runInSlices } from '#lib/time-slicing.ts'
import { encodeJson, encodeJsonInSteps } from '#meta/codec/encode-json.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import type { KubeObject } from '#meta/object.ts'
import type { CommitResult, Revision, Write } from '#storage/backend.ts'
import type { Resting } from '#storage/encryption/at-rest.ts'

import type { NotedRequest } from '../trail/trail.ts'
import type { Entry, EntryMaker } from './entry.ts'
import { isTooLarge, storageFailure } from './errors.ts'
import type { PendingWrites } from './pending-writes.ts'
import type { Resource } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'
import { SharedLeases } from './shared-leases.ts'
import { isLarge } from './sizes.ts'
import type { VersionConverter } from './version-converter.ts'

export interface CommitOptions {
  readonly resource: Resource
  readonly services: Services
  readonly entries: EntryMaker
  /** The pending writes, whose entries the cache takes over. */
  readonly pendingWrites: PendingWrites
  /** For a custom resource: the converter of its version. */
  readonly converter?: VersionConverter
}

export class Commits {
  readonly #options: CommitOptions
  readonly #resting: Resting
  /** For a resource with a time to live. */
  readonly #leases: SharedLeases | undefined

  constructor(options: CommitOptions) {
    this.#options = options
    const { kind, ttlMs } = options.resource
    const { backend, clock, atRest, leaseReuseMs: reuseMs } = options.services
    this.#resting = atRest.resting({ group: kind.group, resource: kind.plural })
    this.#leases = ttlMs === undefined ? undefined : new SharedLeases({ backend, clock, ttlMs, reuseMs })
  }

  /** The entry of a canonical `object` at the revision of the stored one; nothing is stored. */
  async entryOf(key: string, object: KubeObject, request: Writing, current?: Entry): Promise<Entry> {
    const { custom } = this.#options.resource
    const stored = custom === undefined ? object : await custom.store(object)
    const encoding = this.#text(stored, isLarge(request, current))
    const text = typeof encoding === 'string' ? encoding : await encoding
    return this.#shown(this.#making(key, text, stored)(current?.modRevision ?? 0))
  }

  /**
   * `object` is canonical and has no resource version. Undefined if the stored object is no longer `current`. An object
   * that is too large is retried without managed fields, unless the request is about those.
   */
  async put(key: string, object: KubeObject, request: Writing, current?: Entry): Promise<Entry | undefined> {
    const { resource, pendingWrites } = this.#options
    const { custom } = resource
    const stored = custom === undefined ? object : await custom.store(object)
    const encoding = this.#text(stored, isLarge(request, current))
    const text = typeof encoding === 'string' ? encoding : await encoding
    const value = this.#resting.seal(key, this.#encode(text, object))
    const sent = { key, value, make: this.#making(key, text, stored) }
    const pending = pendingWrites.begin(sent)
    let revision: Revision | undefined
    let entry: Entry | undefined
    try {
      const result = await this.#commit({ key, value, expected: current?.modRevision ?? 0 }, request)
      if (result.ok) {
        ;({ revision } = result)
        this.#options.services.trail.note(revision, request)
      }
    } catch (cause) {
      const error = this.#failure(cause)
      const { managedFields, ...metadata } = object.metadata
      if (managedFields === undefined || request.isApply === true || !isTooLarge(error)) throw error
      return await this.put(key, { ...object, metadata }, request, current)
    } finally {
      entry = pendingWrites.end(pending, sent, revision)
    }
    return entry === undefined || this.#options.converter === undefined ? entry : this.#shown(entry)
  }

  /** A promise for a large object; small ones, nearly all, are encoded synchronously. */
  #text(stored: KubeObject, isSliced: boolean): string | Promise<string> {
    return isSliced ? runInSlices(encodeJsonInSteps(stored), this.#options.services.clock) : encodeJson(stored)
  }

  #commit(write: Write, request: Writing): Promise<CommitResult> {
    const { backend } = this.#options.services
    const signal = this.#signalOf(request)
    if (this.#leases === undefined) return backend.commit([write], signal)
    return this.#leases.with((lease) => backend.commit([{ ...write, lease }], signal))
  }

  /** Converts the stored object for a client that wrote in another version. */
  async #shown(entry: Entry): Promise<Entry> {
    await this.#options.converter?.prepare([entry])
    return entry
  }

  /** The future entry of the text. */
  #making(key: string, text: string, stored: KubeObject): (revision: Revision) => Entry {
    const { entries, converter } = this.#options
    return (revision) => {
      const entry = entries.written(key, text, stored, revision)
      converter?.noteWritten(entry)
      return entry
    }
  }

  /** True if the stored value is plain or uses an old encryption key, and should be rewritten unchanged. */
  async restsStale({ key, modRevision }: Entry): Promise<boolean> {
    if (!this.#resting.isSealing) return false
    const [item] = (await this.#options.services.backend.range({ start: key })).items
    return item?.modRevision === modRevision && this.#resting.isStale(item.value)
  }

  /** False if another writer changed it meanwhile. */
  async remove({ key, modRevision }: Entry, request: Writing): Promise<boolean> {
    const write = { key, value: null, expected: modRevision }
    const { backend, trail } = this.#options.services
    try {
      const { ok, revision } = await backend.commit([write], this.#signalOf(request))
      if (ok) trail.note(revision, request)
      return ok
    } catch (cause) {
      throw this.#failure(cause)
    }
  }

  #encode(text: string, object: KubeObject): Buffer {
    const { resource, services } = this.#options
    const schema = services.storesProtobuf === true ? resource.shapes.schemaFor(resource.kind) : undefined
    if (schema?.protobuf === undefined) return Buffer.from(text, 'utf8')
    return encodeProtobuf(schema, resource.kind, object as unknown as JsonObject)
  }

  /** Waits without a signal: a commit takes as long as the disk, and a signal for each would cost more. */
  #signalOf(request: Writing): AbortSignal | undefined {
    return this.#options.services.backend.isRemote === true ? request.signal : undefined
  }

  #failure(cause: unknown): unknown {
    const { group, plural } = this.#options.resource.kind
    return storageFailure(cause, { group, resource: plural })
  }
}

type Writing = NotedRequest & Pick<WriteRequest, 'signal' | 'isApply' | 'bodyBytes'>
