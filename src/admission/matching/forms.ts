/**
 * Forms: the object of a write in each version in which it is served. Webhooks and policies look at it in the version
 * that their rules name, and what they make of it goes back into the version that is written.
 */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Registry, ServedResource } from '#apiserver/registry/registry.ts'
import type { Resource } from '#apiserver/registry/resource.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import { applyDefaults } from '#apiserver/registry/write-rules.ts'
import type { JsonObject } from '#lib/json-value.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupVersionKind, type GroupVersionResource, internalTypeOf } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'

/** A resource and the kind of its objects, or of the bodies of one of its parts. */
export interface Form {
  readonly resource: GroupVersionResource
  readonly kind: GroupVersionKind
}

/** The objects of a write in one of their forms, each a copy in canonical form. */
export interface Shown {
  readonly kind: GroupVersionKind
  readonly object: KubeObject | undefined
  readonly oldObject: KubeObject | undefined
}

/** Custom resources are read as they come, and merged by what their definition says. */
export interface Schemas {
  readonly schema: StructSchema
  readonly type: StructSchema
}

export interface Forms {
  /** Other resources under which the same objects are served, with the same part. */
  equivalents(attributes: Attributes): readonly Form[]
  /** Throws StatusError when those who convert fail. */
  show(attributes: Attributes, kind: GroupVersionKind): Promise<Shown>
  /** What objects of the kind are read by and what they are merged by; undefined when nothing is known of it. */
  schemasOf(attributes: Attributes, kind: GroupVersionKind): Schemas | undefined
  /**
   * `value`, any JSON, as an object of the kind in canonical form: unknown fields dropped. Throws CodecError when it is
   * none.
   */
  read(attributes: Attributes, kind: GroupVersionKind, value: unknown): KubeObject
  /** Makes the object of the write what `object` is, with the defaults of its version. */
  take(attributes: Attributes, kind: GroupVersionKind, object: KubeObject): Promise<void>
}

/** What upstream calls the table of types by which it reads patched objects. */
const SCHEME = 'pkg/runtime/scheme.go:111'

export function createForms(registry: Registry): Forms {
  const siblingsOf = remembered(registry)
  /** The version of the resource whose objects are of that kind; undefined for bodies that are never stored. */
  const versionOf = ({ addressed, kind: stored }: Attributes, kind: GroupVersionKind): Resource | undefined => {
    const served = kind.kind === stored.kind ? registry.find(addressed) : undefined
    if (served === undefined) return undefined
    const isWanted = (one: GroupVersionKind): boolean => apiVersionOf(one) === apiVersionOf(kind)
    return (siblingsOf(served).find((one) => isWanted(one.representation.kind)) ?? served).resource
  }
  const read: Forms['read'] = (attributes, kind, value) => {
    const { shapes, custom } = versionOf(attributes, kind) ?? { shapes: BUILT_IN }
    const { object } = decodeObject(encodeJson(value), 'application/json', {
      schemaFor: shapes.schemaFor,
      defaultKind: kind,
      expected: { ...kind, internalType: internalTypeOf(kind) },
      scheme: SCHEME,
      ...(custom && { prune: (found: JsonObject) => custom.prune(found as unknown as KubeObject) }),
    })
    return object as unknown as KubeObject
  }
  return {
    read,
    equivalents(attributes) {
      const served = registry.find(attributes.addressed)
      return served === undefined ? [] : siblingsOf(served).flatMap((one) => formOf(one, attributes))
    },
    async show(attributes, kind) {
      const version = versionOf(attributes, kind)
      const as = async (object: KubeObject | undefined): Promise<KubeObject | undefined> =>
        object && read(attributes, kind, version === undefined ? object : await converted(object, version, kind))
      return { kind, object: await as(attributes.object), oldObject: await as(attributes.oldObject) }
    },
    schemasOf(attributes, kind) {
      const { schemaFor, typeFor = schemaFor } = versionOf(attributes, kind)?.shapes ?? BUILT_IN
      const [schema, type] = [schemaFor(kind), typeFor(kind)]
      return schema && type && { schema, type }
    },
    async take(attributes, kind, object) {
      const version = versionOf(attributes, kind)
      const written = versionOf(attributes, attributes.kind)
      if (version === undefined || written === undefined) return replace(attributes.object, object)
      applyDefaults(version, kind, object, registry.services)
      replace(attributes.object, await converted(object, written, attributes.kind))
    },
  }
}

/** The object as that version of its resource has it. */
async function converted(
  object: KubeObject,
  { custom, shapes }: Resource,
  kind: GroupVersionKind,
): Promise<KubeObject> {
  if (object.apiVersion === apiVersionOf(kind)) return object
  if (custom === undefined) return shapes.convert(object, kind)
  if (custom.ask === undefined) return custom.show(deepCopy(object))
  return (await custom.ask([object]))[0] as KubeObject
}

type Siblings = (served: ServedResource) => readonly ServedResource[]

/** What else shows the same stored objects. Whatever changes about that, all of it is served anew. */
function remembered(registry: Registry): Siblings {
  const known = new WeakMap<ServedResource, readonly ServedResource[]>()
  return (served) => {
    let siblings = known.get(served)
    if (siblings === undefined) {
      const { collection } = served.store
      siblings = [...registry.served()].filter((one) => one.store.collection === collection)
      known.set(served, siblings)
    }
    return siblings
  }
}

/** Empty for the one that the request names, and for those without the part that it is about. */
function formOf({ representation: { kind } }: ServedResource, { addressed, subresource }: Attributes): Form[] {
  if (apiVersionOf(kind) === apiVersionOf(addressed)) return []
  const body = subresource === '' ? kind : kind.subresources.find(({ name }) => name === subresource)?.kind
  if (body === undefined) return []
  const resource = { group: kind.group, version: kind.version, resource: kind.plural }
  return [{ resource, kind: { group: body.group, version: body.version, kind: body.kind } }]
}

/** Plugins change what they are handed in place. */
function replace(target: KubeObject | undefined, source: KubeObject): void {
  if (target === undefined || target === source) return
  const fields = target as unknown as Record<string, unknown>
  for (const name of Object.keys(fields)) delete fields[name]
  Object.assign(target, source)
}
