/** What strategic merge asks of a schema: the type, strategy and merge key of a field, as Go's struct tags say them. */
import { goQuote } from '#lib/go-text.ts'

import type { FieldSchema, Schema } from '../schema.ts'
import { failed } from './strategic-merge-error.ts'

export interface GoType {
  readonly schema: Schema
  readonly pointer: boolean
}

export interface PatchField {
  readonly fieldType: GoType
  /** Other than `retainKeys`, which only clients that make patches look at. */
  readonly strategy: 'merge' | 'replace' | ''
  readonly mergeKey: string
}

export interface PatchList extends Omit<PatchField, 'fieldType'> {
  readonly itemType: GoType
}

/** Throws when the type has no such field, or has no fields at all: a Go map cannot be merged into. */
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

/** The same for a field that holds a list. */
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
