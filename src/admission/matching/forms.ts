/**
 * Forms: the object of a write in each version in which it is served. Webhooks and policies look at it in the version
 * that their rules name, and what they make of it goes back into the version in which it is stored.
 */
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Registry } from '#apiserver/registry/registry.ts'
import type { Resource } from '#apiserver/registry/resource.ts'
import { BUILT_IN, type Shapes } from '#apiserver/registry/shapes.ts'
import { applyDefaults } from '#apiserver/registry/write-rules.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { apiVersionOf, type GroupVersionKind, type GroupVersionResource } from '#meta/kind.ts'
import { deepCopy, type KubeObject } from '#meta/object.ts'

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

export interface Forms {
  /** Other resources under which the same objects are served, with the same part. */
  equivalents(attributes: Attributes): readonly Form[]
  show(attributes: Attributes, kind: GroupVersionKind): Promise<Shown>
  /**
   * `value`, any JSON, as an object of the kind in canonical form: unknown fields dropped. Throws CodecError when it is
   * none.
   */
  read(attributes: Attributes, kind: GroupVersionKind, value: unknown): KubeObject
  /** Makes the object of the write what `object` is, with the defaults of its version. */
  take(attributes: Attributes, kind: GroupVersionKind, object: KubeObject): Promise<void>
}

export function createForms(registry: Registry): Forms {
  const resourceOf = ({ addressed }: Attributes): Resource | undefined => registry.find(addressed)?.resource
  /** The resource whose objects are written; undefined for a body of another kind, which has one form only. */
  const writtenOf = (attributes: Attributes): Resource | undefined =>
    attributes.objectKind.kind === attributes.kind.kind ? resourceOf(attributes) : undefined
  const shapesOf = (attributes: Attributes): Shapes => writtenOf(attributes)?.shapes ?? BUILT_IN
  return {
    equivalents(attributes) {
      const resource = resourceOf(attributes)
      return resource?.otherVersions === undefined ? [] : othersOf(registry, resource, attributes)
    },
    async show(attributes, kind) {
      const shapes = shapesOf(attributes)
      const isOwn = writtenOf(attributes) === undefined
      const as = async (object: KubeObject | undefined): Promise<KubeObject | undefined> =>
        object && canonical(shapes, kind, isOwn ? object : shapes.convert(object, kind))
      return { kind, object: await as(attributes.object), oldObject: await as(attributes.oldObject) }
    },
    read: (attributes, kind, value) => canonical(shapesOf(attributes), kind, value),
    async take(attributes, kind, object) {
      const resource = writtenOf(attributes)
      if (resource === undefined) return replace(attributes.object, object)
      applyDefaults(resource, kind, object, registry.services)
      replace(attributes.object, resource.shapes.convert(object, resource.kind))
    },
  }
}

/** A copy of any JSON as an object of the kind. */
function canonical({ schemaFor }: Shapes, kind: GroupVersionKind, value: unknown): KubeObject {
  const schema = schemaFor(kind)
  const copy = deepCopy(value)
  const object = schema === undefined ? copy : decodeValue(schema, copy, 'Ignore', { offences: [] })
  const { kind: _, apiVersion: __, ...rest } = object as KubeObject
  return { kind: kind.kind, apiVersion: apiVersionOf(kind), ...rest }
}

function othersOf(registry: Registry, resource: Resource, { addressed, subresource }: Attributes): Form[] {
  const store = registry.find(addressed)?.store
  const kinds = [resource.kind, ...(resource.otherVersions ?? []).map(({ kind }) => kind)]
  return kinds.flatMap((kind) => {
    const form = { group: kind.group, version: kind.version, resource: kind.plural }
    if (apiVersionOf(form) === apiVersionOf(addressed) || registry.find(form)?.store !== store) return []
    const body = subresource === '' ? kind : kind.subresources.find(({ name }) => name === subresource)?.kind
    return body === undefined ? [] : [{ resource: form, kind: body }]
  })
}

/** Plugins change what they are handed in place. */
function replace(target: KubeObject | undefined, source: KubeObject): void {
  if (target === undefined || target === source) return
  const fields = target as unknown as Record<string, unknown>
  for (const name of Object.keys(fields)) delete fields[name]
  Object.assign(target, source)
}
