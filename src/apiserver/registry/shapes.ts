/**
 * The schemas of a kind's versions, and the conversion between versions. Built-in kinds share one table and one
 * conversion; a resource that is added at run time has its own.
 */
import { schemaFor } from '#apis/schemas.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { FieldSchema, StructSchema } from '#meta/schema.ts'
import { convert } from '#model/conversion/conversion.ts'

export interface Shapes {
  /** The kind and its list in each version, and shared bodies: options, Status, Scale. */
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
  /** Converts to another version; the result may share parts with the input, or be it. */
  readonly convert: (object: KubeObject, to: GroupVersionKind) => KubeObject
  /** The schema for server-side apply, if decoding uses a simpler one. */
  readonly typeFor?: (gvk: GroupVersionKind) => StructSchema | undefined
}

export const BUILT_IN: Shapes = { schemaFor, convert }

/** The schemas of a resource that no table contains. */
export interface OwnShapes {
  /** By apiVersion: each served version and the storage version. */
  readonly schemas: Readonly<Record<string, StructSchema>>
  /** Default: versions differ in their name only. */
  convert?(object: KubeObject, to: GroupVersionKind): KubeObject
}

/** The shapes of a kind that is not built in. */
export function createShapes({ kind, listKind }: { kind: string; listKind: string }, own: OwnShapes): Shapes {
  const lists = new Map(Object.entries(own.schemas).map(([apiVersion, schema]) => [apiVersion, listOf(schema)]))
  return {
    schemaFor(gvk) {
      const apiVersion = apiVersionOf(gvk)
      if (gvk.kind === kind && Object.hasOwn(own.schemas, apiVersion)) return own.schemas[apiVersion]
      return (gvk.kind === listKind ? lists.get(apiVersion) : undefined) ?? schemaFor(gvk)
    },
    convert(object, to) {
      const apiVersion = apiVersionOf(to)
      if (object.apiVersion === apiVersion) return object
      return own.convert?.(object, to) ?? { ...object, apiVersion }
    },
  }
}

/** The shapes of a custom resource: its objects are decoded without a schema and merged by its schemas. */
export function createCustomShapes(
  { group, kind, listKind }: { group: string; kind: string; listKind: string },
  typeFor: (version: string) => StructSchema | undefined,
): Shapes {
  const schemaOf = (gvk: GroupVersionKind): StructSchema | undefined => {
    // Upstream decodes any version before it compares it with that of the path.
    if (gvk.group !== group) return schemaFor(gvk) ?? CUSTOM_OBJECT
    return gvk.kind === listKind ? CUSTOM_LIST : CUSTOM_OBJECT
  }
  return {
    schemaFor: schemaOf,
    typeFor: (gvk) => (gvk.group === group && gvk.kind === kind ? typeFor(gvk.version) : schemaFor(gvk)),
    convert: (object, to) => ({ ...object, apiVersion: apiVersionOf(to) }),
  }
}

/** Any object with metadata. */
export const CUSTOM_OBJECT: StructSchema = openSchema()
const CUSTOM_LIST: StructSchema = listOf(CUSTOM_OBJECT)

function openSchema(): StructSchema {
  const pattern = schemaFor({ group: '', version: 'v1', kind: 'ConfigMap' })
  const fields = ['kind', 'apiVersion', 'metadata'].flatMap((name) => {
    const field = pattern?.fields.get(name)
    return field === undefined ? [] : ([[name, field]] as const)
  })
  return {
    type: 'struct',
    goType: 'unstructured.Unstructured',
    fields: new Map(fields),
    mapType: 'granular',
    preserveUnknown: true,
  }
}

/** Lists of all kinds differ only in their items; they have a protobuf form if the items do. */
function listOf(items: StructSchema): StructSchema {
  const pattern = schemaFor({ group: '', version: 'v1', kind: 'ConfigMapList' })
  if (pattern === undefined) throw new Error('There is no list to take after')
  const { protobuf, ...list } = pattern
  const withItems = (field: FieldSchema): FieldSchema =>
    field.name === 'items' ? { ...field, schema: { type: 'list', items, pointerItems: false } } : field
  const numbered = protobuf?.fields.map((one) =>
    one.field === undefined ? one : { ...one, field: withItems(one.field) },
  )
  return {
    ...list,
    goType: `${items.goType}List`,
    fields: new Map(Array.from(list.fields, ([name, field]) => [name, withItems(field)])),
    ...(items.protobuf !== undefined && numbered !== undefined && { protobuf: { ...protobuf, fields: numbered } }),
  }
}
