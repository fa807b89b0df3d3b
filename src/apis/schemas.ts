/**
 * Schemas of the built-in kinds, resolved on demand from the generated tables. Each table has the structs of one group
 * version and is parsed when a kind first needs it. Each struct is resolved once and shared, so recursive types are
 * cycles of objects.
 */
import { readFileSync } from 'node:fs'

import { apiVersionOf, type GroupVersion, type GroupVersionKind, parseApiVersion } from '#meta/kind.ts'
import type {
  FieldSchema,
  ListType,
  PatchStrategy,
  ProtobufField,
  ProtobufType,
  Schema,
  StructSchema,
} from '#meta/schema.ts'

import {
  FIELD_FLAG,
  type FieldExtras,
  type FieldRow,
  type SchemaTable,
  STRUCT_FLAG,
  type StructRow,
} from './table-format.ts'
import { tableNames } from './table-names.ts'
import { parseType } from './type-text.ts'

interface Table extends SchemaTable {
  readonly name: string
  /** Go's package name, `v1` in `v1.PodSpec`. */
  readonly goPackage: string
  readonly resolved: Map<string, StructSchema>
  /** Kinds asked for so far. Misses are not kept: their names may come from users. */
  readonly byKind: Map<string, StructSchema>
  /** Types are shared by their text, so a thousand string fields have one schema. */
  readonly types: Map<string, Schema>
}

/** A struct that others may already point to, with its members still to come. */
interface Shell {
  readonly table: Table
  readonly row: StructRow
  readonly struct: StructSchema
  readonly fields: Map<string, FieldSchema>
  readonly protobuf: ProtobufField[]
  filled: boolean
}

/** Kinds that every group version knows; their structs are in the table of `meta.k8s.io/v1`. */
const everywhere: ReadonlySet<string> = new Set([
  'CreateOptions',
  'DeleteOptions',
  'GetOptions',
  'ListOptions',
  'PatchOptions',
  'UpdateOptions',
  'WatchEvent',
])

const typeMeta: readonly FieldRow[] = [
  ['kind', 's', FIELD_FLAG.omitEmpty, 0],
  ['apiVersion', 's', FIELD_FLAG.omitEmpty, 0],
]

const tables = new Map<string, Table>()
/** Declared and not yet handed out. Empty whenever no call is under way. */
const shells = new Map<StructSchema, Shell>()

/**
 * The schema of a built-in kind: those served, versions that are gone but still decode, lists, options and the kinds
 * of `meta.k8s.io`. Undefined for everything else. The same object each time.
 */
export function schemaFor(gvk: GroupVersionKind): StructSchema | undefined {
  const name = tableNames.get(apiVersionOf(gvk))
  if (name === undefined) return undefined
  const table = loadTable(name)
  const known = table.byKind.get(gvk.kind)
  if (known !== undefined) return known
  const home = homeOf(table, gvk.kind)
  if (home === undefined) return undefined
  const struct = structFor(home, gvk.kind)
  table.byKind.set(gvk.kind, struct)
  return struct
}

/**
 * The schema of any struct, by table (`core.v1`) and Go name (`PodTemplateSpec`).
 * Throws when there is none: the names are the program's own, never a user's.
 */
export function structFor(tableName: string, goName: string): StructSchema {
  const struct = declare(loadTable(tableName), goName)
  for (const shell of shells.values()) fill(shell)
  shells.clear()
  return struct
}

/** Where a struct is declared: `core.v1` and `PodSpec`. What OpenAPI documents name it after. */
export function originOf(struct: StructSchema): { readonly table: string; readonly goName: string } | undefined {
  return origins.get(struct)
}

const origins = new WeakMap<StructSchema, { readonly table: string; readonly goName: string }>()

/** Every group version that has schemas, served or not. */
export function knownGroupVersions(): GroupVersion[] {
  return [...tableNames.keys()].map(parseApiVersion)
}

/** The kinds of a group version, lists included, without the options that every group version knows. */
export function knownKinds(groupVersion: GroupVersion): string[] {
  const name = tableNames.get(apiVersionOf(groupVersion))
  if (name === undefined) return []
  const { kinds, elsewhere } = loadTable(name)
  return [...kinds, ...Object.keys(elsewhere ?? {})]
}

/** The table that has the struct of a kind. */
function homeOf({ name, kinds, elsewhere }: Table, kind: string): string | undefined {
  if (kinds.includes(kind)) return name
  if (everywhere.has(kind)) return 'meta.v1'
  return elsewhere !== undefined && Object.hasOwn(elsewhere, kind) ? elsewhere[kind] : undefined
}

function loadTable(name: string): Table {
  const known = tables.get(name)
  if (known !== undefined) return known
  const text = readFileSync(new URL(`./tables/${name}.json`, import.meta.url), 'utf8')
  const goPackage = name.slice(name.indexOf('.') + 1)
  const parsed = JSON.parse(text) as SchemaTable
  const table: Table = { ...parsed, name, goPackage, resolved: new Map(), byKind: new Map(), types: new Map() }
  tables.set(name, table)
  return table
}

/** The struct, perhaps still without members: those come when the outermost `structFor` is about to return. */
function declare(table: Table, goName: string): StructSchema {
  const known = table.resolved.get(goName)
  if (known !== undefined) return known
  const row = table.structs[goName]
  if (row === undefined) throw new Error(`No struct "${goName}" in the table "${table.name}"`)
  const fields = new Map<string, FieldSchema>()
  const protobuf: ProtobufField[] = []
  const goType = `${table.goPackage}.${goName}`
  const struct: StructSchema = {
    type: 'struct',
    goType,
    fields,
    mapType: row[0] & STRUCT_FLAG.atomic ? 'atomic' : 'granular',
    preserveUnknown: false,
    ...(row[0] & STRUCT_FLAG.jsonOnly ? {} : { protobuf: { goType, fields: protobuf } }),
  }
  table.resolved.set(goName, struct)
  origins.set(struct, { table: table.name, goName })
  shells.set(struct, { table, row, struct, fields, protobuf, filled: false })
  return struct
}

function fill(shell: Shell): void {
  if (shell.filled) return
  shell.filled = true
  const [flags, ...rows] = shell.row
  for (const row of flags & STRUCT_FLAG.typeMeta ? [...typeMeta, ...rows] : rows) {
    const schema = resolveType(shell.table, row[1])
    if (row[2] & FIELD_FLAG.inline) inline(shell, schema as StructSchema, row[3])
    else addField(shell, row, schema)
  }
  shell.protobuf.sort((a, b) => a.number - b.number)
}

/** Takes the members of `member` into the struct, at the place where Go embeds it. */
function inline(shell: Shell, member: StructSchema, number: number): void {
  const pending = shells.get(member)
  if (pending !== undefined) fill(pending)
  for (const [name, field] of member.fields) shell.fields.set(name, field)
  if (member.protobuf) shell.protobuf.push({ number, wire: 'message', repeated: false, inline: member.protobuf })
}

function addField({ fields, protobuf }: Shell, row: FieldRow, schema: Schema): void {
  const [name, type, flags, number, extras] = row
  const field: Mutable<FieldSchema> = {
    name,
    schema,
    required: (flags & FIELD_FLAG.required) !== 0,
    pointer: (flags & FIELD_FLAG.pointer) !== 0,
    omitEmpty: (flags & FIELD_FLAG.omitEmpty) !== 0,
  }
  if (flags & FIELD_FLAG.emptyCounts) field.emptyCounts = true
  if (flags & FIELD_FLAG.zeroDefault) field.default = zeroOf(schema)
  addMergeRules(field, flags)
  if (extras !== undefined) addExtras(field, extras)
  fields.set(name, field)
  if (number === 0) return
  const repeated = type.startsWith('[')
  protobuf.push({ number, wire: wireOf(schema.type === 'list' && repeated ? schema.items : schema), repeated, field })
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

function addMergeRules(field: Mutable<FieldSchema>, flags: number): void {
  const listType = listTypeOf(flags)
  if (listType !== undefined) field.listType = listType
  if (flags & FIELD_FLAG.patchMerge) field.patchStrategy = ['merge']
  if (flags & FIELD_FLAG.mapAtomic) field.mapType = 'atomic'
  if (flags & FIELD_FLAG.mapGranular) field.mapType = 'granular'
}

function addExtras(field: Mutable<FieldSchema>, extras: FieldExtras): void {
  if (extras.keys !== undefined) field.mapKeys = extras.keys
  if (extras.patchMergeKey !== undefined) field.patchMergeKey = extras.patchMergeKey
  if (extras.patchStrategy !== undefined) field.patchStrategy = extras.patchStrategy.split(',') as PatchStrategy[]
  if (extras.default !== undefined) field.default = extras.default
  if (extras.gate !== undefined) field.gate = extras.gate
}

function listTypeOf(flags: number): ListType | undefined {
  if (flags & FIELD_FLAG.listMap) return 'map'
  if (flags & FIELD_FLAG.listSet) return 'set'
  return flags & FIELD_FLAG.listAtomic ? 'atomic' : undefined
}

function resolveType(table: Table, text: string): Schema {
  const known = table.types.get(text)
  if (known !== undefined) return known
  const schema = parseType(text, {
    struct: (ref) => declareRef(table, ref),
    part: (part) => resolveType(table, part),
  })
  table.types.set(text, schema)
  return schema
}

function declareRef(table: Table, ref: string): StructSchema {
  const slash = ref.indexOf('/')
  return slash < 0 ? declare(table, ref) : declare(loadTable(ref.slice(0, slash)), ref.slice(slash + 1))
}

function wireOf(schema: Schema): ProtobufType {
  switch (schema.type) {
    case 'string':
    case 'bytes':
    case 'int32':
    case 'int64':
    case 'map':
      return schema.type
    case 'boolean':
      return 'bool'
    case 'float64':
      return 'double'
    default:
      return 'message'
  }
}

function zeroOf({ type }: Schema): unknown {
  if (type === 'string' || type === 'bytes') return ''
  if (type === 'boolean') return false
  return type === 'int32' || type === 'int64' || type === 'float64' ? 0 : {}
}
