/**
 * Shapes: what the program knows of the form of a kind's objects, in each of its versions. Built-in kinds share one table
 * and one way to convert; whoever adds a resource while the server runs brings its own.
 */
import { schemaFor } from '#apis/schemas.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import type { FieldSchema, StructSchema } from '#meta/schema.ts'
import { convert } from '#model/conversion/conversion.ts'

export interface Shapes {
  /** Of the kind and its list in each version, and of the bodies that every kind shares: options, Status, Scale. */
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
  /** The same object in another version; it may share parts with the one given, or be it. */
  readonly convert: (object: KubeObject, to: GroupVersionKind) => KubeObject
  /** What server-side apply merges by, where objects are decoded by less than that. */
  readonly typeFor?: (gvk: GroupVersionKind) => StructSchema | undefined
}

export const BUILT_IN: Shapes = { schemaFor, convert }

/** What a resource brings that no table knows. */
export interface OwnShapes {
  /** By apiVersion: each that is served, and the one that is stored. */
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

/** The shapes of a custom resource: its objects are decoded as they come, and merged by what its schemas say. */
export function createCustomShapes(
  { group, kind, listKind }: { group: string; kind: string; listKind: string },
  typeFor: (version: string) => StructSchema | undefined,
): Shapes {
  const schemaOf = (gvk: GroupVersionKind): StructSchema | undefined => {
    // Upstream reads whatever comes before it compares the version with the one of the path.
    if (gvk.group !== group) return schemaFor(gvk) ?? CUSTOM_OBJECT
    return gvk.kind === listKind ? CUSTOM_LIST : CUSTOM_OBJECT
  }
  return {
    schemaFor: schemaOf,
    typeFor: (gvk) => (gvk.group === group && gvk.kind === kind ? typeFor(gvk.version) : schemaFor(gvk)),
    convert: (object, to) => ({ ...object, apiVersion: apiVersionOf(to) }),
  }
}

/** Whatever has metadata. */
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

/** Lists are the same for all kinds, but for their items; with a protobuf form where those have one. */
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
