/** Looks up the type, patch strategy and merge key of a field for strategic merge, as Go's struct tags declare them. */
import { goQuote } from '#lib/go/text.ts'

import type { FieldSchema, Schema } from '../schema.ts'
import { failed } from './strategic-merge-error.ts'

export interface GoType {
  readonly schema: Schema
  readonly pointer: boolean
}

export interface PatchField {
  readonly fieldType: GoType
  /** Without `retainKeys`, which only matters to clients that create patches. */
  readonly strategy: 'merge' | 'replace' | ''
  readonly mergeKey: string
}

export interface PatchList extends Omit<PatchField, 'fieldType'> {
  readonly itemType: GoType
}

/** Throws if the type lacks the field, or has no fields: a Go map cannot be merged. */
export function lookupField(type: GoType, key: string): PatchField {
  const field = fieldOf(type.schema, key)
  const { schema, pointer, patchStrategy = [], patchMergeKey = '' } = field
  const strategy = patchStrategy.find((name) => name !== 'retainKeys') ?? ''
  return { fieldType: { schema, pointer }, strategy, mergeKey: patchMergeKey }
}

function fieldOf(schema: Schema, key: string): FieldSchema {
  const kind = kindOf({ schema, pointer: false })
  if (kind !== 'struct') throw failed(`merging an object in json but data type is not struct, instead is: ${kind}`)
  const field = schema.type === 'struct' ? schema.fields.get(key) : undefined
  if (field !== undefined) return field
  const name = schema.goType?.slice(schema.goType.lastIndexOf('.') + 1) ?? ''
  throw failed(`unable to find api field in struct ${name} for the json field ${goQuote(key)}`)
}

/** The same for a list field. */
export function lookupList(type: GoType, key: string): PatchList {
  const { fieldType, strategy, mergeKey } = lookupField(type, key)
  const { schema, pointer } = fieldType
  if (schema.type === 'list') {
    if (kindOf({ schema: schema.items, pointer: schema.pointerItems }) === 'slice')
      throw failed('unexpected slice of slice')
    return { itemType: { schema: schema.items, pointer: schema.pointerItems }, strategy, mergeKey }
  }
  if (!pointer) throw failed(`expected slice or array type, but got: ${kindOf(type)}`)
  return { itemType: { schema, pointer: false }, strategy, mergeKey }
}

/** Go's reflect.Kind. */
export function kindOf({ schema, pointer }: GoType): string {
  if (pointer) return 'ptr'
  switch (schema.type) {
    case 'list':
    case 'bytes':
      return 'slice'
    case 'boolean':
      return 'bool'
    case 'map':
    case 'string':
    case 'int32':
    case 'int64':
    case 'float64':
      return schema.type
    default:
      return 'struct'
  }
}
