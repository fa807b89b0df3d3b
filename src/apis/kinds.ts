/**
 * The kinds the server can serve as resources: names, scope, verbs and subresources, as discovery shows them. Each
 * kind is one object, whether a caller looks it up here or imports it by name (`Pods` from `core/v1.ts`).
 */
import {
  type GroupResource,
  type GroupVersion,
  type GroupVersionKind,
  type GroupVersionResource,
  isStable,
  kindKey,
  parseApiVersion,
  resourceKey,
} from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import { type CatalogResource, catalog } from './catalog.ts'

declare const objectType: unique symbol

/** A kind and the resource under which it is served. `T` is the type of its objects; nothing of it is there at run time. */
export interface Kind<T extends KubeObject = KubeObject> extends GroupVersionKind {
  /** The resource: lower-case and plural, `pods`. */
  readonly plural: string
  readonly singular: string
  /** `PodList`; also for kinds that cannot be listed. */
  readonly listKind: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  /** Sorted. */
  readonly verbs: readonly string[]
  readonly subresources: readonly Subresource[]
  /** The group and version objects are stored in. Absent for what is never stored, as reviews and bindings. */
  readonly storage?: GroupVersion
  /** What discovery shows for the storage version, so that clients notice when it changes. */
  readonly storageVersionHash?: string
  /** The feature gate without which the resource is not served, even when its version is. */
  readonly gate?: string
  readonly [objectType]?: T
}

export interface Subresource {
  /** `status`, `log`. */
  readonly name: string
  /** The type of its body: `autoscaling/v1 Scale` for `scale`. */
  readonly kind: GroupVersionKind
  readonly verbs: readonly string[]
}

export interface ServedVersion extends GroupVersion {
  /** Served unless `--runtime-config` turns it off; the others are served only if it turns them on. */
  readonly servedByDefault: boolean
  readonly kinds: readonly Kind[]
}

export interface ServedGroup {
  /** Empty for the core group. */
  readonly name: string
  /** The preferred one first. */
  readonly versions: readonly ServedVersion[]
}

const everyVerb = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']

/** Every group, core first and the others as discovery orders them, with alpha and beta versions. */
export const groups: readonly ServedGroup[] = catalog.map(([name, versions]) => ({
  name,
  versions: versions.map(([version, resources]) => ({
    group: name,
    version,
    servedByDefault: isStable(version),
    kinds: resources.map((resource) => createKind({ group: name, version }, resource)),
  })),
}))

const byKind = new Map<string, Kind>()
const byResource = new Map<string, Kind>()
for (const { versions } of groups) {
  for (const kind of versions.flatMap(({ kinds }) => kinds)) {
    byKind.set(kindKey(kind), kind)
    byResource.set(resourceKey({ group: kind.group, version: kind.version, resource: kind.plural }), kind)
  }
}

/** The kind of an object that is a resource of its own; undefined for lists, options, `Scale` and custom resources. */
export function kindFor(gvk: GroupVersionKind): Kind | undefined {
  return byKind.get(kindKey(gvk))
}

/** The kind served under a resource name, without subresources. */
export function resourceFor(gvr: GroupVersionResource): Kind | undefined {
  return byResource.get(resourceKey(gvr))
}

/** The kind of a resource in the version preferred among those that `isServed` lets through. */
export function preferredKind(
  { group, resource }: GroupResource,
  isServed: (version: ServedVersion) => boolean = ({ servedByDefault }) => servedByDefault,
): Kind | undefined {
  const versions = groups.find(({ name }) => name === group)?.versions.filter(isServed) ?? []
  return versions.flatMap(({ kinds }) => kinds).find(({ plural }) => plural === resource)
}

/** The kind with its type, for the generated modules. Throws on a name that is not in the catalog. */
export function kind<T extends KubeObject>(apiVersion: string, resource: string): Kind<T> {
  const found = resourceFor({ ...parseApiVersion(apiVersion), resource })
  if (found === undefined) throw new Error(`No resource "${resource}" in "${apiVersion}"`)
  return found as Kind<T>
}

function createKind(groupVersion: GroupVersion, resource: CatalogResource): Kind {
  const { plural, hash, gate, stored } = resource
  return {
    ...groupVersion,
    kind: resource.kind,
    plural,
    singular: resource.kind.toLowerCase(),
    listKind: `${resource.kind}List`,
    namespaced: resource.namespaced ?? true,
    shortNames: resource.shortNames ?? [],
    categories: resource.categories ?? [],
    verbs: resource.verbs ?? everyVerb,
    subresources: Object.entries(resource.subresources ?? {}).map(([name, [verbs, kindName, apiVersion]]) => ({
      name,
      kind: {
        ...(apiVersion === undefined ? groupVersion : parseApiVersion(apiVersion)),
        kind: kindName ?? resource.kind,
      },
      verbs: verbs.split(' '),
    })),
    ...(hash !== undefined && {
      storage: stored === undefined ? groupVersion : parseApiVersion(stored),
      storageVersionHash: hash,
    }),
    ...(gate !== undefined && { gate }),
  }
}
