/**
 * The object of a write in each served version. Webhooks and policies receive the version that their rules name; their
 * changes are converted back.
 */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Registry, ServedResource } from '#apiserver/registry/registry.ts'
import type { Resource } from '#apiserver/registry/resource.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import { applyDefaults } from '#apiserver/registry/write-rules.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupVersionKind, type GroupVersionResource, internalTypeOf } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'
import type { StructSchema } from '#meta/schema.ts'

/** A resource and the kind of its objects, or of the bodies of a subresource. */
export interface Form {
  readonly resource: GroupVersionResource
  readonly kind: GroupVersionKind
}

/** The objects of a write in one form, each a copy in canonical form. */
export interface Shown {
  readonly kind: GroupVersionKind
  readonly object: KubeObject | undefined
  readonly oldObject: KubeObject | undefined
}

/** Custom resources are decoded without a schema and merged by their definition. */
export interface Schemas {
  readonly schema: StructSchema
  readonly type: StructSchema
}

export interface Forms {
  /** Other resources that serve the same objects, with the same subresource. */
  equivalents(attributes: Attributes): readonly Form[]
  /** Throws StatusError if conversion fails. */
  show(attributes: Attributes, kind: GroupVersionKind): Promise<Shown>
  /** The schemas for decoding and merging objects of the kind; undefined if it is unknown. */
  schemasOf(attributes: Attributes, kind: GroupVersionKind): Schemas | undefined
  /** Decodes `value`, any JSON, as a canonical object of the kind without unknown fields. Throws CodecError. */
  read(attributes: Attributes, kind: GroupVersionKind, value: unknown): KubeObject
  /** Replaces the object of the write by `object`, with the defaults of its version. */
  take(attributes: Attributes, kind: GroupVersionKind, object: KubeObject): Promise<void>
}

/** Upstream's name of the type scheme for patched objects. */
const SCHEME = 'pkg/runtime/scheme.go:111'

export function createForms(registry: Registry): Forms {
  const siblingsOf = remembered(registry)
  /** The version of the resource with objects of that kind; undefined for bodies that are never stored. */
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

/** The object in that version of its resource. */
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

/** The other views of the same stored objects. Any change registers them again. */
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

/** Empty for the requested resource and for those without its subresource. */
function formOf({ representation: { kind } }: ServedResource, { addressed, subresource }: Attributes): Form[] {
  if (apiVersionOf(kind) === apiVersionOf(addressed)) return []
  const body = subresource === '' ? kind : kind.subresources.find(({ name }) => name === subresource)?.kind
  if (body === undefined) return []
  const resource = { group: kind.group, version: kind.version, resource: kind.plural }
  return [{ resource, kind: { group: body.group, version: body.version, kind: body.kind } }]
}

/** Copies, because plugins modify objects in place. */
function replace(target: KubeObject | undefined, source: KubeObject): void {
  if (target === undefined || target === source) return
  const fields = target as unknown as Record<string, unknown>
  for (const name of Object.keys(fields)) delete fields[name]
  Object.assign(target, source)
}
