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

/** Lists are the same for all kinds, but for their items; without a protobuf form. */
function listOf(items: StructSchema): StructSchema {
  const pattern = schemaFor({ group: '', version: 'v1', kind: 'ConfigMapList' })
  if (pattern === undefined) throw new Error('There is no list to take after')
  const { protobuf: _, ...list } = pattern
  const withItems = ([name, field]: [string, FieldSchema]): [string, FieldSchema] =>
    name === 'items' ? [name, { ...field, schema: { type: 'list', items, pointerItems: false } }] : [name, field]
  return { ...list, goType: `${items.goType}List`, fields: new Map([...list.fields].map(withItems)) }
}
