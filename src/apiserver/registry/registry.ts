/**
 * Registry: all served resources with their stores, and the look-up for requests. Resources, such as custom ones, can
 * be added at run time.
 */
import { Bindings, Pods } from '#apis/core/v1.ts'
import type { Kind, ServedGroup } from '#apis/kinds.ts'
import { createMemoryBudget } from '#component/requests/response-memory.ts'
import { parseJson, stringifyJson } from '#lib/json/json.ts'
import { createYamlReader } from '#lib/yaml/reader.ts'
import { encodeJson, typeMetaPrefix } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { isProtobuf } from '#meta/codec/protobuf.ts'
import { apiVersionOf, type GroupVersionKind, type GroupVersionResource, kindKey, resourceKey } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'
import { coerceEmbedded } from '#model/custom/embedded.ts'
import { structuralOf } from '#model/custom/structural.ts'
import { createServerMeters, type ServerMeters } from '#model/metrics/families.ts'
import { StorageError } from '#storage/backend.ts'
import { createCollectionMeter } from '#storage/watch-cache/collection-meter.ts'

import { Trail } from '../trail/trail.ts'
import type { Admission } from './admission.ts'
import { ByteMemo } from './byte-memo.ts'
import { createEntryMaker, type Entry, type EntryMaker } from './entry.ts'
import { PendingWrites } from './pending-writes.ts'
import { Representation } from './representation.ts'
import type { ObjectReader, Resource, Review } from './resource.ts'
import { admitScales } from './scale.ts'
import { addedGroups, builtInGroups } from './served-groups.ts'
import type { Services } from './services.ts'
import { BUILT_IN } from './shapes.ts'
import { Store, type StoreOptions } from './store.ts'
import { VersionConverter } from './version-converter.ts'
import type { VirtualResource } from './virtual.ts'
import { SYSTEM_USER, Writer } from './writer.ts'

const PREFIX = '/registry/'

/** For lists, watch frames and other encodings: six lists of 5,000 objects of 1 KiB. */
const MEMO_BYTES = 32 << 20

/** For large lists until they are sent: a client that stops reading is disconnected, but not at once. */
const ANSWER_ROOM = { userBytes: 64 << 20, totalBytes: 256 << 20 }

/** A resource in one of its served versions: see handlers/view.ts. */
export interface ServedResource {
  readonly resource: Resource
  readonly store: Store
  /** For writes through `scale`: the same objects, admitted as Scales. */
  readonly scaleStore?: Store
  readonly representation: Representation
  readonly services: Services
}

export interface RegistryParts extends Omit<
  Services,
  'admission' | 'objects' | 'writer' | 'trail' | 'memos' | 'answers' | 'yaml' | 'metrics'
> {
  readonly admission: (registry: Registry) => Admission
  /** Not registered anywhere by default. */
  readonly metrics?: ServerMeters
}

/** The stored objects of a resource, for all its versions. */
interface ResourceStorage {
  readonly collection: StoreOptions['collection']
  readonly pendingWrites: PendingWrites
  /** Makes entries of values that are read from now on. */
  entries: EntryMaker
  /** Aborted when watches must end. */
  closing?: AbortController
}

/** A custom resource: its served versions, each with its rules, and the storage version. */
export interface CustomResource {
  readonly stored: Resource
  readonly served: readonly Resource[]
  /** True if objects look unchanged: watches continue. */
  readonly looksTheSame?: boolean
}

export class Registry implements ObjectReader {
  readonly #services: Services
  /** Custom resources by prefix: a source stays while versions come and go. */
  readonly #customs = new Map<string, ResourceStorage>()
  readonly #stores = new Map<string, Store>()
  /** By group, version and plural. */
  readonly #served = new Map<string, ServedResource>()
  readonly #reviews = new Map<string, Review>()
  readonly #virtuals = new Map<string, VirtualResource>()
  /** Schemas of objects and lists by version; made on demand. */
  #byKind: ReadonlyMap<string, Resource> | undefined
  /** Those of all served resources. */
  #groups: ReadonlySet<string> = new Set()
  /** The writer of the server itself. */
  readonly writer: Writer = new Writer((kind) => this.storeOf(kind), this, SYSTEM_USER)

  /** Admission may itself read and write this registry, so it is created for it. */
  constructor({ admission, ...services }: RegistryParts) {
    const yaml = createYamlReader(services.clock)
    this.#services = {
      ...services,
      metrics: services.metrics ?? createServerMeters(),
      admission: admission(this),
      objects: this,
      writer: this.writer,
      trail: new Trail(services.clock),
      memos: new ByteMemo(MEMO_BYTES),
      answers: createMemoryBudget(ANSWER_ROOM),
      yaml,
    }
  }

  get services(): Services {
    return this.#services
  }

  /** Serves a resource in the versions for which `isServed` is true. */
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
   * Serves a custom resource and atomically replaces its previous definition. Stored objects are not read again;
   * watches end, so that clients reconnect and see the change.
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

  #customView(resource: Resource, source: ResourceStorage): ServedResource {
    const services = this.#services
    const { custom, kind, shapes, scale } = resource
    if (custom === undefined) throw new Error(`${kind.plural} is no custom resource`)
    const converter = new VersionConverter(resource, custom, source.collection.prefix, services.memos)
    const representation = new Representation({ kind, stored: kind, shapes, memos: services.memos, converter })
    const parts = { ...source, resource, services, converter }
    const store = new Store(parts)
    if (scale === undefined) return { resource, store, representation, services }
    const admission = admitScales(scale, services.admission)
    const scaleStore = new Store({ ...parts, services: { ...services, admission } })
    return { resource, store, scaleStore, representation, services }
  }

  /**
   * Stops serving all versions: its paths vanish at once and its watches end. Stored objects stay. False if it was not
   * served.
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

  /** True if any resource of this group is served. */
  hasGroup(group: string): boolean {
    return this.#groups.has(group)
  }

  /** True if any resource of this group version is served. */
  hasGroupVersion(group: string, version: string): boolean {
    const start = resourceKey({ group, version, resource: '' })
    const keys = [...this.#served.keys(), ...this.#reviews.keys(), ...this.#virtuals.keys()]
    return keys.some((key) => key.startsWith(start))
  }

  /** The resource with a storage prefix, `/registry/pods/`. */
  resourceAt(prefix: string): { readonly group: string; readonly resource: string } | undefined {
    for (const { collection, resource } of this.#stores.values()) {
      if (collection.prefix === prefix) return { group: resource.kind.group, resource: resource.kind.plural }
    }
    return undefined
  }

  served(): Iterable<ServedResource> {
    return this.#served.values()
  }

  /** The served groups, versions and kinds in discovery order: those of the catalog first. */
  groups(): ServedGroup[] {
    const virtuals = [...this.#virtuals.values()].map(({ kind }) => kind)
    const kinds = [...[...this.#served.values()].map(({ representation }) => representation.kind), ...virtuals]
    return [...builtInGroups((kind) => this.#has(kind)), ...addedGroups(kinds)]
  }

  #has({ group, version, plural }: Kind): boolean {
    // An alias of `pods/binding`: see dispatch.
    const isBinding = group === Bindings.group && plural === Bindings.plural
    const key = resourceKey({ group, version, resource: isBinding ? Pods.plural : plural })
    return this.#served.has(key) || this.#reviews.has(key) || this.#virtuals.has(key)
  }

  /** The schema of any served kind, or of a shared body such as options. */
  schemaFor(gvk: GroupVersionKind): StructSchema | undefined {
    this.#byKind ??= new Map(
      [...this.#served.values()].flatMap(({ representation: { kind }, resource }) => [
        [kindKey(kind), resource] as const,
        [kindKey({ ...kind, kind: kind.listKind }), resource] as const,
      ]),
    )
    return (this.#byKind.get(kindKey(gvk))?.shapes ?? BUILT_IN).schemaFor(gvk)
  }

  /** The resource that serves objects of a kind in that version. */
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

  async #openStored(resource: Resource, prefix: string): Promise<ResourceStorage> {
    const pendingWrites = new PendingWrites()
    const maker = { entries: this.#entryMaker(resource, prefix) }
    const { group, plural } = resource.kind
    const collection = await this.#services.cache.open<Entry>({
      prefix,
      meter: createCollectionMeter(this.#services.metrics, { group, resource: plural }),
      describe: (stored, isListed) => pendingWrites.takeEntry(stored) ?? maker.entries.read(stored, isListed),
      indexOf: (entry, index) =>
        index === 'metadata.name'
          ? entry.name
          : index === 'metadata.namespace'
            ? entry.namespace
            : (entry.fields[index] ?? ''),
    })
    return Object.assign(maker, { collection, pendingWrites })
  }

  #entryMaker(resource: Resource, keyPrefix: string): EntryMaker {
    const { atRest } = this.#services
    const { kind, shapes, fieldSelectors = {}, custom } = resource
    const resting = atRest.resting({ group: kind.group, resource: kind.plural })
    // Each version of a custom resource has its own field selectors, which are read on demand.
    const selectors = custom === undefined ? Object.entries(fieldSelectors) : []
    return createEntryMaker({
      prefix: typeMetaPrefix(kind),
      keyPrefix,
      ...(custom !== undefined && { apiVersion: apiVersionOf(kind) }),
      open: ({ key, value }) => resting.open(key, value),
      decode(value) {
        const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength)
        const mediaType = isProtobuf(bytes) ? 'application/vnd.kubernetes.protobuf' : 'application/json'
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

/** Values of other writers may have metadata of wrong types: like upstream, the rest is shown without them. */
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

function sameVersion(a: GroupVersionKind, b: GroupVersionKind): boolean {
  return apiVersionOf(a) === apiVersionOf(b)
}

function keyOf({ group, version, plural }: Kind): string {
  return resourceKey({ group, version, resource: plural })
}
