/** Commits: how the objects of one resource get into the backend, and become entries of the cache on the way. */
import type { JsonObject } from '#lib/json-value.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import type { KubeObject } from '#meta/object.ts'
import type { CommitResult, Revision } from '#storage/backend.ts'
import type { Resting } from '#storage/encryption/at-rest.ts'

import type { Entry, EntryMaker } from './entry.ts'
import { isTooLarge, storageFailure } from './errors.ts'
import type { Lens } from './lens.ts'
import type { Resource } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'
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

  constructor(options: CommitOptions) {
    this.#options = options
    const { group, plural } = options.resource.kind
    this.#resting = options.services.atRest.resting({ group, resource: plural })
  }

  /** The entry that `object`, canonical, would be at `revision`; nothing is stored. */
  async entryOf(key: string, object: KubeObject, revision: Revision): Promise<Entry> {
    const { make } = await this.#making(key, object)
    return this.#shown(make(revision))
  }

  /**
   * `object` is canonical and has no resource version. Undefined when another revision than `expected` is there. What is too
   * large for the store is tried without who owns its fields, unless that is what the request is about.
   */
  async put(
    key: string,
    object: KubeObject,
    expected: Revision,
    { signal, isApply = false }: Pick<WriteRequest, 'signal' | 'isApply'>,
  ): Promise<Entry | undefined> {
    try {
      return await this.#put(key, object, expected, signal)
    } catch (error) {
      const { managedFields, ...metadata } = object.metadata
      if (managedFields === undefined || isApply || !isTooLarge(error)) throw error
      return this.#put(key, { ...object, metadata }, expected, signal)
    }
  }

  async #put(key: string, object: KubeObject, expected: Revision, signal: AbortSignal): Promise<Entry | undefined> {
    const { resource, services, underway } = this.#options
    const { text, make } = await this.#making(key, object)
    const value = this.#resting.seal(key, this.#encode(text, object))
    const lease = resource.ttlMs === undefined ? undefined : await services.backend.grantLease(resource.ttlMs)
    const write = { key, value, expected, ...(lease === undefined ? {} : { lease }) }
    const entry = await underway.run({ key, value, make }, async () => {
      const result = await this.#write(write, signal)
      return result.ok ? result.revision : undefined
    })
    return entry && this.#shown(entry)
  }

  /** Ready to be shown: whoever wrote in another version than is stored is told what conversion makes of what is stored. */
  async #shown(entry: Entry): Promise<Entry> {
    await this.#options.lens?.prepare([entry])
    return entry
  }

  /** The text to be stored, and the entry that it will be. */
  async #making(
    key: string,
    object: KubeObject,
  ): Promise<{ readonly text: string; readonly make: (revision: Revision) => Entry }> {
    const { entries, lens, resource } = this.#options
    const stored = resource.custom === undefined ? object : await resource.custom.store(object)
    const text = encodeJson(stored)
    const make = (revision: Revision): Entry => {
      const entry = entries.written(key, text, stored, revision)
      lens?.wrote(entry)
      return entry
    }
    return { text, make }
  }

  /** Whether what rests should be written again, unchanged: that is how all is sealed with a new key. */
  async restsStale({ key, modRevision }: Entry): Promise<boolean> {
    if (!this.#resting.isSealing) return false
    const [item] = (await this.#options.services.backend.range({ start: key })).items
    return item?.modRevision === modRevision && this.#resting.isStale(item.value)
  }

  /** False when somebody changed it meanwhile. */
  async remove({ key, modRevision }: Entry, signal: AbortSignal): Promise<boolean> {
    return (await this.#write({ key, value: null, expected: modRevision }, signal)).ok
  }

  #encode(text: string, object: KubeObject): Buffer {
    const { resource, services } = this.#options
    const schema = services.storesProtobuf === true ? resource.shapes.schemaFor(resource.kind) : undefined
    if (schema?.protobuf === undefined) return Buffer.from(text, 'utf8')
    return encodeProtobuf(schema, resource.kind, object as unknown as JsonObject)
  }

  async #write(
    write: Parameters<Services['backend']['commit']>[0][number],
    signal: AbortSignal,
  ): Promise<CommitResult> {
    try {
      return await this.#options.services.backend.commit([write], signal)
    } catch (cause) {
      const { group, plural } = this.#options.resource.kind
      throw storageFailure(cause, { group, resource: plural })
    }
  }
}
