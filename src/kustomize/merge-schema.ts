/** Looks up the merge keys of lists, from API types or from the OpenAPI document of a kustomization. */
import { schemaFor } from '#apis/schemas.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import type { FieldSchema, Schema } from '#meta/schema.ts'

import type { Gvk } from './ids.ts'

export interface MergeSchema {
  /** True if the list merges item by item. */
  readonly merges: boolean
  /** The keys that identify items. */
  readonly keys: readonly string[]
  field(name: string): MergeSchema | undefined
  elements(): MergeSchema | undefined
}

/** Undefined for unknown kinds. */
export function mergeSchemaOf(gvk: Gvk, document: JsonObject | undefined): MergeSchema | undefined {
  if (document !== undefined) {
    const found = fromDocument(document, gvk)
    if (found !== undefined) return found
  }
  const schema = schemaFor(gvk)
  return schema === undefined ? undefined : ofType(schema)
}

function ofType(schema: Schema, field?: FieldSchema): MergeSchema {
  const keys = field?.mapKeys ?? (field?.patchMergeKey === undefined ? [] : [field.patchMergeKey])
  return {
    merges: field?.patchStrategy?.includes('merge') ?? false,
    keys,
    field(name) {
      if (schema.type === 'map') return ofType(schema.values)
      const found = schema.type === 'struct' ? schema.fields.get(name) : undefined
      return found === undefined ? undefined : ofType(found.schema, found)
    },
    elements: () => (schema.type === 'list' ? ofType(schema.items) : undefined),
  }
}

/** All definitions of the document by their kinds. */
function fromDocument(document: JsonObject, { group, version, kind }: Gvk): MergeSchema | undefined {
  const { definitions } = document
  if (definitions === undefined || !isJsonObject(definitions)) return undefined
  const isMeant = (value: JsonValue): boolean => {
    if (!isJsonObject(value)) return false
    const kinds = value['x-kubernetes-group-version-kind']
    return (
      Array.isArray(kinds) &&
      kinds.some(
        (one) => isJsonObject(one) && one['group'] === group && one['version'] === version && one['kind'] === kind,
      )
    )
  }
  const found = Object.values(definitions).find(isMeant)
  return found === undefined ? undefined : ofDefinition(found as JsonObject, definitions)
}

function ofDefinition(given: JsonObject, definitions: JsonObject): MergeSchema {
  const schema = resolved(given, definitions)
  const listKeys = schema['x-kubernetes-list-map-keys']
  const mergeKey = schema['x-kubernetes-patch-merge-key']
  const strategy = schema['x-kubernetes-patch-strategy']
  const keys = Array.isArray(listKeys) ? listKeys.map(String) : typeof mergeKey === 'string' ? [mergeKey] : []
  const inner = (value: JsonValue | undefined): MergeSchema | undefined =>
    value !== undefined && isJsonObject(value) ? ofDefinition(value, definitions) : undefined
  return {
    merges: typeof strategy === 'string' && strategy.split(',').includes('merge'),
    keys,
    field: (name) => inner((schema['properties'] as JsonObject | undefined)?.[name] ?? schema['additionalProperties']),
    elements: () => inner(schema['items']),
  }
}

function resolved(schema: JsonObject, definitions: JsonObject): JsonObject {
  const { $ref: ref, ...rest } = schema
  if (typeof ref !== 'string') return schema
  const found = definitions[ref.replace('#/definitions/', '')]
  return found !== undefined && isJsonObject(found) ? { ...found, ...rest } : rest
}
