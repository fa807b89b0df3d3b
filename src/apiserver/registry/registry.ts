/**
 * Registry: every resource that is served, each with its store, and how a request finds it. Resources can be added while
 * the server runs; a custom resource is one more.
 */
import { Bindings, Pods } from '#apis/core/v1.ts'
import type { Kind, ServedGroup } from '#apis/kinds.ts'
import { parseJson, stringifyJson } from '#lib/json.ts'
import { createYamlReader } from '#lib/yaml-reader.ts'
import { encodeJson, typeMetaPrefix } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupVersionKind, type GroupVersionResource, kindKey, resourceKey } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { coerceEmbedded } from '#model/custom/embedded.ts'
import { structuralOf } from '#model/custom/structural.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'
import { StorageError } from '#storage/backend.ts'
import { createCollectionMeter } from '#storage/watch-cache/collection-meter.ts'

import { Representation } from '../answers/representation.ts'
import { createRoom } from '../answers/room.ts'
import type { Admission } from './admission.ts'
import { ByteMemo } from './byte-memo.ts'
import { createEntryMaker, type Entry, type EntryMaker } from './entry.ts'
import { Lens } from './lens.ts'
import type { ObjectReader, Resource, Review } from './resource.ts'
import { admitScales } from './scale.ts'
import { addedGroups, builtInGroups } from './served-groups.ts'
import type { Services } from './services.ts'
import { BUILT_IN } from './shapes.ts'
import { Store, type StoreOptions } from './store.ts'
import { WritesUnderway } from './underway.ts'
import type { VirtualResource } from './virtual.ts'
import { SYSTEM_USER, Writer } from './writer.ts'

const PREFIX = '/registry/'

/** For lists, frames of watches and other forms of objects: six lists of 5,000 objects of 1 KiB. */
const MEMO_BYTES = 32 << 20

/** Of large lists, until they are sent: a client that stopped reading is cut off, but not at once. */
const ANSWER_ROOM = { userBytes: 64 << 20, totalBytes: 256 << 20 }

/** A resource as one of its served versions shows it: see handlers/view.ts. */
export interface ServedResource {
  readonly resource: Resource
  readonly store: Store
  /** For writes through `scale`: the same objects, let in as the Scales they are shown as. */
  readonly scaleStore?: Store
  readonly representation: Representation
  readonly services: Services
}

export interface RegistryParts extends Omit<
  Services,
  'admission' | 'objects' | 'writer' | 'memos' | 'answers' | 'yaml' | 'metrics'
> {
  readonly admission: (registry: Registry) => Admission
  /** Default: counted where nobody looks. */
  readonly metrics?: ServerMeters
}

/** What is stored of a resource, whichever versions show it. */
interface Stored {
  readonly collection: StoreOptions['collection']
  readonly underway: WritesUnderway
  /** How what is read from now on becomes entries. */
  entries: EntryMaker
  /** Aborted when watches are to end. */
  closing?: AbortController
}

/** A custom resource: each version that is served with rules of its own, and the one in which objects are written. */
export interface CustomResource {
  readonly stored: Resource
  readonly served: readonly Resource[]
  /** Objects look as they did before: who watches may go on. */
  readonly looksTheSame?: boolean
}

export class Registry implements ObjectReader {
  readonly #services: Services
  /** Of custom resources, by prefix: it stays while the versions that show it come and go. */
  readonly #customs = new Map<string, Stored>()
  readonly #stores = new Map<string, Store>()
  /** By group, version and plural. */
  readonly #served = new Map<string, ServedResource>()
  readonly #reviews = new Map<string, Review>()
  readonly #virtuals = new Map<string, VirtualResource>()
  /** Of objects and lists in their versions; made when first asked for. */
  #byKind: ReadonlyMap<string, Resource> | undefined
  /** Those of everything that is served. */
  #groups: ReadonlySet<string> = new Set()
  /** What the server itself writes, as itself. */
  readonly writer: Writer = new Writer((kind) => this.storeOf(kind), this, SYSTEM_USER)

  /** What lets writes in may itself read and write here: it is made for this registry. */
  constructor({ admission, ...services }: RegistryParts) {
    const yaml = createYamlReader(services.clock)
    this.#services = {
      ...services,
      metrics: services.metrics ?? createServerMeters(),
      admission: admission(this),
      objects: this,
      writer: this.writer,
      memos: new ByteMemo(MEMO_BYTES),
      answers: createRoom(ANSWER_ROOM),
      yaml,
    }
  }

  get services(): Services {
    return this.#services
  }

  /** Serves a resource in the versions that `isServed` lets through. */
  async add(resource: Resource, isServed: (kind: Kind) => boolean = () => true): Promise<Store> {
    const { store, scaleStore } = await this.#open(resource)
    const { group, plural } = resource.kind
    this.#stores.set(`${group}/${plural}`, store)
    const kinds = [resource.kind, ...(resource.otherVersions ?? []).map(({ kind }) => kind)]
    for (const kind of kinds.filter(isServed)) {
      const { shapes, kind: stored } = resource
      const representation = new Representation({ kind, stored, shapes, memos: this.#services.memos })
      const stores = { store, ...(scaleStore !== undefined && { scaleStore }) }
      this.#served.set(keyOf(kind), { resource, ...stores, representation, services: this.#services })
    }
    this.#noteGroups()
    return store
  }

  /**
   * Serves a custom resource; in place of what was served of it before, without a moment in between. What is stored is
   * not read again; watches end, so that their clients come back to see what changed.
   */
  async addCustom({ stored, served, looksTheSame = false }: CustomResource): Promise<void> {
    const prefix = `${PREFIX}${stored.storagePrefix}/`
    const known = this.#customs.get(prefix)
    if (known !== undefined) known.entries = this.#entryMaker(stored, prefix)
    const source = known ?? (await this.#openStored(stored, prefix))
    this.#customs.set(prefix, source)
    const { group, plural } = stored.kind
    const before = source.closing
    if (before === undefined || !looksTheSame) source.closing = new AbortController()
    const views = new Map([stored, ...served].map((resource) => [resource, this.#customView(resource, source)]))
    const isOurs = (kind: Kind): boolean => kind.group === group && kind.plural === plural
    const old = [...this.#served].filter(([, { representation }]) => isOurs(representation.kind))
    for (const resource of served) this.#served.set(keyOf(resource.kind), views.get(resource) as ServedResource)
    for (const [key, view] of old) if (this.#served.get(key) === view) this.#served.delete(key)
    if (before !== source.closing) before?.abort()
    this.#stores.set(`${group}/${plural}`, (views.get(stored) as ServedResource).store)
    this.#noteGroups()
  }

  #customView(resource: Resource, source: Stored): ServedResource {
    const services = this.#services
    const { custom, kind, shapes, scale } = resource
    if (custom === undefined) throw new Error(`${kind.plural} is no custom resource`)
    const lens = new Lens(resource, custom, source.collection.prefix, services.memos)
    const representation = new Representation({ kind, stored: kind, shapes, memos: services.memos, lens })
    const parts = { ...source, resource, services, lens }
    const store = new Store(parts)
    if (scale === undefined) return { resource, store, representation, services }
    const admission = admitScales(scale, services.admission)
    const scaleStore = new Store({ ...parts, services: { ...services, admission } })
    return { resource, store, scaleStore, representation, services }
  }

  /**
   * Serves it no longer, in no version: its paths are gone at once, its watches end. What is stored of it stays. False
   * when it was not there.
   */
  remove({ group, plural }: Pick<Kind, 'group' | 'plural'>): boolean {
    const store = this.#stores.get(`${group}/${plural}`)
    if (store === undefined) return false
    this.#stores.delete(`${group}/${plural}`)
    const { prefix } = store.collection
    for (const [key, served] of this.#served) {
      if (served.store.collection !== store.collection) continue
      this.#served.delete(key)
      served.store.close()
    }
    this.#noteGroups()
    store.close()
    this.#customs.delete(prefix)
    this.#services.cache.drop(prefix)
    return true
  }

  addReview(review: Review): void {
    this.#reviews.set(keyOf(review.kind), review)
    this.#noteGroups()
  }

  addVirtual(resource: VirtualResource): void {
    this.#virtuals.set(keyOf(resource.kind), resource)
    this.#noteGroups()
  }

  find(resource: GroupVersionResource): ServedResource | undefined {
    return this.#served.get(resourceKey(resource))
  }

  findReview(resource: GroupVersionResource): Review | undefined {
    return this.#reviews.get(resourceKey(resource))
  }

  findVirtual(resource: GroupVersionResource): VirtualResource | undefined {
    return this.#virtuals.get(resourceKey(resource))
  }

  #noteGroups(): void {
    this.#byKind = undefined
    const served = [...this.#served.values()].map(({ representation }) => representation)
    const all = [...served, ...this.#reviews.values(), ...this.#virtuals.values()]
    this.#groups = new Set(all.map(({ kind }) => kind.group))
  }

  /** Whether anything of this group is served. */
  hasGroup(group: string): boolean {
    return this.#groups.has(group)
  }

  /** Whether anything of this group version is served. */
  hasGroupVersion(group: string, version: string): boolean {
    const start = resourceKey({ group, version, resource: '' })
    const keys = [...this.#served.keys(), ...this.#reviews.keys(), ...this.#virtuals.keys()]
    return keys.some((key) => key.startsWith(start))
  }

  /** What is stored under a prefix of the store, `/registry/pods/`. */
  resourceAt(prefix: string): { readonly group: string; readonly resource: string } | undefined {
    for (const { collection, resource } of this.#stores.values()) {
      if (collection.prefix === prefix) return { group: resource.kind.group, resource: resource.kind.plural }
    }
    return undefined
  }

  served(): Iterable<ServedResource> {
    return this.#served.values()
  }

  /** The groups, versions and kinds that are served, in discovery's order: those of the catalog first. */
  groups(): ServedGroup[] {
    const virtuals = [...this.#virtuals.values()].map(({ kind }) => kind)
    const kinds = [...[...this.#served.values()].map(({ representation }) => representation.kind), ...virtuals]
    return [...builtInGroups((kind) => this.#has(kind)), ...addedGroups(kinds)]
  }

  #has({ group, version, plural }: Kind): boolean {
    // Another door to `pods/binding`: see dispatch.
    const isBinding = group === Bindings.group && plural === Bindings.plural
    const key = resourceKey({ group, version, resource: isBinding ? Pods.plural : plural })
    return this.#served.has(key) || this.#reviews.has(key) || this.#virtuals.has(key)
  }

  /** The schema of any kind that is served, or of a body that all kinds share. */
  schemaFor(gvk: GroupVersionKind): StructSchema | undefined {
    this.#byKind ??= new Map(
      [...this.#served.values()].flatMap(({ representation: { kind }, resource }) => [
        [kindKey(kind), resource] as const,
        [kindKey({ ...kind, kind: kind.listKind }), resource] as const,
      ]),
    )
    return (this.#byKind.get(kindKey(gvk))?.shapes ?? BUILT_IN).schemaFor(gvk)
  }

  /** The resource that serves objects of a kind, in that version. */
  findKind({ group, version, kind }: GroupVersionKind): ServedResource | undefined {
    for (const served of this.#served.values()) {
      const own = served.representation.kind
      if (own.kind === kind && own.group === group && own.version === version) return served
    }
    return undefined
  }

  storeOf(kind: Pick<Kind, 'group' | 'plural'>): Store | undefined {
    return this.#stores.get(`${kind.group}/${kind.plural}`)
  }

  async get<T extends KubeObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined> {
    const entry = await this.storeOf(kind)?.get(namespace, name)
    return entry?.object as T | undefined
  }

  async list<T extends KubeObject>(kind: Kind<T>, namespace: string): Promise<readonly T[]> {
    const store = this.storeOf(kind)
    if (store === undefined) return []
    if (!this.#services.cache.isFresh) await this.#services.cache.fresh()
    const { collection } = store
    if (collection.state.size === 0) return []
    const slice = namespace === '' ? {} : { prefix: `${collection.prefix}${namespace}/` }
    return collection.entries(slice).map(({ object }) => object as T)
  }

  async #open(resource: Resource): Promise<{ readonly store: Store; readonly scaleStore: Store | undefined }> {
    const parts = {
      resource,
      services: this.#services,
      ...(await this.#openStored(resource, `${PREFIX}${resource.storagePrefix}/`)),
    }
    const { scale } = resource
    if (scale === undefined) return { store: new Store(parts), scaleStore: undefined }
    const services = { ...this.#services, admission: admitScales(scale, this.#services.admission) }
    return { store: new Store(parts), scaleStore: new Store({ ...parts, services }) }
  }

  async #openStored(resource: Resource, prefix: string): Promise<Stored> {
    const underway = new WritesUnderway()
    const held = { entries: this.#entryMaker(resource, prefix) }
    const { group, plural } = resource.kind
    const collection = await this.#services.cache.open<Entry>({
      prefix,
      meter: createCollectionMeter(this.#services.metrics, { group, resource: plural }),
      describe: (stored, isListed) => underway.pickUp(stored) ?? held.entries.read(stored, isListed),
      indexOf: (entry, index) =>
        index === 'metadata.name'
          ? entry.name
          : index === 'metadata.namespace'
            ? entry.namespace
            : (entry.fields[index] ?? ''),
    })
    return Object.assign(held, { collection, underway })
  }

  #entryMaker(resource: Resource, keyPrefix: string): EntryMaker {
    const { atRest } = this.#services
    const { kind, shapes, fieldSelectors = {}, custom } = resource
    const resting = atRest.resting({ group: kind.group, resource: kind.plural })
    // The versions of a custom resource each have their own, which are read when asked for.
    const selectors = custom === undefined ? Object.entries(fieldSelectors) : []
    return createEntryMaker({
      prefix: typeMetaPrefix(kind),
      keyPrefix,
      ...(custom !== undefined && { apiVersion: apiVersionOf(kind) }),
      open: ({ key, value }) => resting.open(key, value),
      decode(value) {
        const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
        const mediaType = isEnvelope(bytes) ? 'application/vnd.kubernetes.protobuf' : 'application/json'
        const decode = (from: Buffer): ReturnType<typeof decodeObject> =>
          decodeObject(from, mediaType, { schemaFor: shapes.schemaFor, defaultKind: kind })
        const { object, gvk } = custom === undefined ? decode(bytes) : decodeCustom(bytes, decode)
        if (gvk.kind !== kind.kind)
          throw new StorageError('corrupt', `A ${gvk.kind} is stored under a key of ${kind.plural}`)
        const found = object as unknown as KubeObject
        if (custom !== undefined) {
          found.metadata.generation ??= 1
          return { apiVersion: apiVersionOf(gvk), body: encodeJson(found).slice(typeMetaPrefix(gvk).length) }
        }
        return encodeJson(sameVersion(gvk, kind) ? found : shapes.convert(found, kind))
      },
      fields: (object) =>
        selectors.length === 0 ? NO_FIELDS : Object.fromEntries(selectors.map(([name, read]) => [name, read(object)])),
    })
  }
}

/** What others wrote into the store may have metadata of wrong types: the rest is shown without them, as upstream does. */
function decodeCustom<T>(bytes: Buffer, decode: (from: Buffer) => T): T {
  try {
    return decode(bytes)
  } catch {
    const value = parseJson(bytes)
    coerceEmbedded(value, structuralOf({ type: 'object' }), { isRoot: true, dropInvalid: true })
    return decode(Buffer.from(stringifyJson(value)))
  }
}

const NO_FIELDS: Readonly<Record<string, string>> = Object.freeze({})

/** Upstream's kube-apiserver stores protobuf; so may a store that we take over. */
function isEnvelope(bytes: Buffer): boolean {
  return bytes.length >= 4 && bytes.readUInt32BE(0) === 0x6b387300
}

function sameVersion(a: GroupVersionKind, b: GroupVersionKind): boolean {
  return apiVersionOf(a) === apiVersionOf(b)
}

function keyOf({ group, version, plural }: Kind): string {
  return resourceKey({ group, version, resource: plural })
}
