/** Commits: how the objects of one resource get into the backend, and become entries of the cache on the way. */
import type { JsonObject } from '#lib/json-value.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import type { KubeObject } from '#meta/object.ts'
import type { CommitResult, Revision, Write } from '#storage/backend.ts'
import type { Resting } from '#storage/encryption/at-rest.ts'

import type { Entry, EntryMaker } from './entry.ts'
import { isTooLarge, storageFailure } from './errors.ts'
import type { Lens } from './lens.ts'
import type { Resource } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'
import { SharedLeases } from './shared-leases.ts'
import type { WritesUnderway } from './underway.ts'

export interface CommitOptions {
  readonly resource: Resource
  readonly services: Services
  readonly entries: EntryMaker
  /** For the cache to pick up what is written here. */
  readonly underway: WritesUnderway
  /** Of a custom resource: how its version shows what is stored. */
  readonly lens?: Lens
}

export class Commits {
  readonly #options: CommitOptions
  readonly #resting: Resting
  /** Of a resource whose objects are not kept for ever. */
  readonly #leases: SharedLeases | undefined

  constructor(options: CommitOptions) {
    this.#options = options
    const { kind, ttlMs } = options.resource
    const { backend, clock, atRest, leaseReuseMs: reuseMs } = options.services
    this.#resting = atRest.resting({ group: kind.group, resource: kind.plural })
    this.#leases = ttlMs === undefined ? undefined : new SharedLeases({ backend, clock, ttlMs, reuseMs })
  }

  /** The entry that `object`, canonical, would be at `revision`; nothing is stored. */
  async entryOf(key: string, object: KubeObject, revision: Revision): Promise<Entry> {
    const { custom } = this.#options.resource
    const stored = custom === undefined ? object : await custom.store(object)
    return this.#shown(this.#making(key, encodeJson(stored), stored)(revision))
  }

  /**
   * `object` is canonical and has no resource version. Undefined when another revision than `expected` is there. What is too
   * large for the store is tried without who owns its fields, unless that is what the request is about.
   */
  async put(key: string, object: KubeObject, expected: Revision, request: Writing): Promise<Entry | undefined> {
    const { resource, underway } = this.#options
    const { custom } = resource
    const stored = custom === undefined ? object : await custom.store(object)
    const text = encodeJson(stored)
    const value = this.#resting.seal(key, this.#encode(text, object))
    const sent = { key, value, make: this.#making(key, text, stored) }
    const pending = underway.begin(sent)
    let revision: Revision | undefined
    let entry: Entry | undefined
    try {
      const result = await this.#commit({ key, value, expected }, request)
      if (result.ok) ({ revision } = result)
    } catch (cause) {
      const error = this.#failure(cause)
      const { managedFields, ...metadata } = object.metadata
      if (managedFields === undefined || request.isApply === true || !isTooLarge(error)) throw error
      return await this.put(key, { ...object, metadata }, expected, request)
    } finally {
      entry = underway.end(pending, sent, revision)
    }
    return entry === undefined || this.#options.lens === undefined ? entry : this.#shown(entry)
  }

  #commit(write: Write, request: Writing): Promise<CommitResult> {
    const { backend } = this.#options.services
    const signal = this.#signalOf(request)
    if (this.#leases === undefined) return backend.commit([write], signal)
    return this.#leases.with((lease) => backend.commit([{ ...write, lease }], signal))
  }

  /** Ready to be shown: whoever wrote in another version than is stored is told what conversion makes of what is stored. */
  async #shown(entry: Entry): Promise<Entry> {
    await this.#options.lens?.prepare([entry])
    return entry
  }

  /** The entry that the text will be once it is stored. */
  #making(key: string, text: string, stored: KubeObject): (revision: Revision) => Entry {
    const { entries, lens } = this.#options
    return (revision) => {
      const entry = entries.written(key, text, stored, revision)
      lens?.wrote(entry)
      return entry
    }
  }

  /** Whether what rests should be written again, unchanged: that is how all is sealed with a new key. */
  async restsStale({ key, modRevision }: Entry): Promise<boolean> {
    if (!this.#resting.isSealing) return false
    const [item] = (await this.#options.services.backend.range({ start: key })).items
    return item?.modRevision === modRevision && this.#resting.isStale(item.value)
  }

  /** False when somebody changed it meanwhile. */
  async remove({ key, modRevision }: Entry, request: Writing): Promise<boolean> {
    const write = { key, value: null, expected: modRevision }
    try {
      return (await this.#options.services.backend.commit([write], this.#signalOf(request))).ok
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

  /** A commit that takes no longer than the disk does is waited for: a signal for each costs more than that. */
  #signalOf(request: Writing): AbortSignal | undefined {
    return this.#options.services.backend.isRemote === true ? request.signal : undefined
  }

  #failure(cause: unknown): unknown {
    const { group, plural } = this.#options.resource.kind
    return storageFailure(cause, { group, resource: plural })
  }
}

type Writing = Pick<WriteRequest, 'signal' | 'isApply'>
