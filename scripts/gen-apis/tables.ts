/** Writes a package as the compact table that `src/apis/schemas.ts` reads; `table-format.ts` explains the form. */
import {
  FIELD_FLAG,
  type FieldExtras,
  type FieldRow,
  STRUCT_FLAG,
  type StructRow,
} from '../../src/apis/table-format.ts'
import { SCALAR_LETTERS } from '../../src/apis/type-text.ts'
import type { Package } from './packages.ts'
import type { Field, Struct } from './structs.ts'
import type { TypeRef } from './type-refs.ts'

/** `core/v1` → `core.v1`. */
export function tableName(key: string): string {
  return key.replace('/', '.')
}

/** One struct per line, so that a new release reads well as a diff. */
export function renderTable({ key, kinds, elsewhere, structs }: Package): string {
  const homes = Object.entries(elsewhere).sort(([a], [b]) => (a < b ? -1 : 1))
  const lines = [...structs.values()].map(
    (struct) => `${JSON.stringify(struct.name)}:${JSON.stringify(structRow(struct, key))}`,
  )
  const other = Object.fromEntries(homes.map(([kind, home]) => [kind, tableName(home)]))
  return [
    `{"kinds":${JSON.stringify(kinds)},`,
    ...(homes.length > 0 ? [`"elsewhere":${JSON.stringify(other)},`] : []),
    '"structs":{',
    lines.join(',\n'),
    '}}\n',
  ].join('\n')
}

function structRow({ typeMeta, atomic, jsonOnly, fields }: Struct, key: string): StructRow {
  const flags =
    (typeMeta ? STRUCT_FLAG.typeMeta : 0) | (atomic ? STRUCT_FLAG.atomic : 0) | (jsonOnly ? STRUCT_FLAG.jsonOnly : 0)
  return [flags, ...fields.map((field) => fieldRow(field, key))]
}

function fieldRow(field: Field, key: string): FieldRow {
  const extras = fieldExtras(field)
  const row = [field.name, typeText(field.type, key), fieldFlags(field), field.number] as const
  return Object.keys(extras).length > 0 ? [...row, extras] : row
}

function fieldFlags({ pointer, omitEmpty, required, inline, emptyCounts, openapi }: Field): number {
  const listType = openapi['x-kubernetes-list-type']
  const flags: readonly [boolean, number][] = [
    [pointer, FIELD_FLAG.pointer],
    [omitEmpty, FIELD_FLAG.omitEmpty],
    [required, FIELD_FLAG.required],
    [inline, FIELD_FLAG.inline],
    [isZeroDefault(openapi.default), FIELD_FLAG.zeroDefault],
    [listType === 'atomic', FIELD_FLAG.listAtomic],
    [listType === 'set', FIELD_FLAG.listSet],
    [listType === 'map', FIELD_FLAG.listMap],
    [openapi['x-kubernetes-patch-strategy'] === 'merge', FIELD_FLAG.patchMerge],
    [openapi['x-kubernetes-map-type'] === 'atomic', FIELD_FLAG.mapAtomic],
    [openapi['x-kubernetes-map-type'] === 'granular', FIELD_FLAG.mapGranular],
    [emptyCounts, FIELD_FLAG.emptyCounts],
  ]
  return flags.reduce((sum, [on, flag]) => (on ? sum | flag : sum), 0)
}

function fieldExtras({ openapi, gate }: Field): FieldExtras {
  const keys = openapi['x-kubernetes-list-map-keys']
  const patchMergeKey = openapi['x-kubernetes-patch-merge-key']
  const patchStrategy = openapi['x-kubernetes-patch-strategy']
  return {
    ...(keys !== undefined && { keys }),
    ...(patchMergeKey !== undefined && { patchMergeKey }),
    ...(patchStrategy !== undefined && patchStrategy !== 'merge' && { patchStrategy }),
    ...(openapi.default !== undefined && !isZeroDefault(openapi.default) && { default: openapi.default }),
    ...(gate !== undefined && { gate }),
  }
}

function isZeroDefault(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return value === '' || value === 0 || value === false
}

const letters = new Map(Object.entries(SCALAR_LETTERS).map(([letter, [type]]) => [type, letter]))

function typeText(type: TypeRef, key: string): string {
  switch (type.kind) {
    case 'scalar':
      return `${letters.get(type.type)}${type.goType === undefined ? '' : `=${type.goType}`}`
    case 'any':
      return `a=${type.goType}`
    case 'struct':
    case 'alternatives': {
      const name = type.package === key ? type.name : `${tableName(type.package)}/${type.name}`
      return `${type.kind === 'struct' ? '@' : '?'}${name}`
    }
    case 'map':
      return `{${type.goType ?? ''}}${typeText(type.values, key)}`
    case 'list': {
      const name = type.goType ?? ''
      return `${type.wrapped ? `(${name})` : `[${name}]`}${typeText(type.items, key)}`
    }
  }
}
