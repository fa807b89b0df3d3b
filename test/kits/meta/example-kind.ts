/** A custom kind for tests with every merge type, in two versions that differ in the name of one field. */
import type { ApplyKind, VersionedValue } from '#meta/apply/apply-kind.ts'
import type { FieldSchema, ScalarType, Schema, StructSchema } from '#meta/schema.ts'

type Rules = Partial<Omit<FieldSchema, 'name' | 'schema'>>

export function scalar(type: ScalarType): Schema {
  return { type, goType: type }
}

export function field(name: string, schema: Schema, rules: Rules = {}): FieldSchema {
  return { name, schema, required: false, pointer: true, omitEmpty: true, ...rules }
}

export function struct(fields: readonly FieldSchema[], rules: Partial<StructSchema> = {}): StructSchema {
  const named = new Map(fields.map((each) => [each.name, each]))
  return { type: 'struct', goType: 'v1.Widget', fields: named, mapType: 'granular', preserveUnknown: false, ...rules }
}

export function list(items: Schema): Schema {
  return { type: 'list', items, pointerItems: false }
}

export function map(values: Schema): Schema {
  return { type: 'map', values }
}

const text = scalar('string')
const untyped: Schema = { type: 'any', goType: 'interface {}', deduced: true }

const metadata = struct([
  field('name', text),
  field('namespace', text),
  field('uid', text),
  field('labels', map(text)),
  field('annotations', map(text)),
  field('finalizers', list(text), { listType: 'set' }),
  field('managedFields', list(untyped)),
])

const port = struct([
  field('port', scalar('int64')),
  field('protocol', text, { default: 'TCP' }),
  field('name', text),
  field('options', struct([field('a', text), field('b', text)], { mapType: 'atomic' })),
])

/** `countName` is the version's name of its replicas. */
function widgetSchema(countName: string): StructSchema {
  const spec = struct([
    field(countName, scalar('int64')),
    field('paused', scalar('boolean')),
    field('image', text),
    field('ports', list(port), { listType: 'map', mapKeys: ['port', 'protocol'] }),
    field('tags', list(text), { listType: 'set' }),
    field('steps', list(text), { listType: 'atomic' }),
    field('selector', map(text), { mapType: 'atomic' }),
    field('zones', map(struct([field('weight', scalar('int64')), field('name', text)]))),
    field('free', untyped),
    field('open', struct([field('known', text)], { preserveUnknown: true })),
    field('constructor', text),
  ])
  const status = struct([field('phase', text)])
  return struct([
    field('apiVersion', text),
    field('kind', text),
    field('metadata', metadata),
    field('spec', spec),
    field('status', status),
  ])
}

const schemas: ReadonlyMap<string, StructSchema> = new Map([
  ['example.com/v1', widgetSchema('replicas')],
  ['example.com/v2', widgetSchema('size')],
])

/** Version v1 has `spec.replicas`, v2 has `spec.size`, and there was a v0. */
export const exampleKind: ApplyKind = {
  typeOf(apiVersion) {
    const schema = schemas.get(apiVersion)
    return schema && { schema }
  },
  convert(object, apiVersion) {
    return object.apiVersion === apiVersion ? object : { apiVersion, value: renamed(object, apiVersion) }
  },
}

function renamed({ value }: VersionedValue, apiVersion: string): unknown {
  const [from, to] = apiVersion.endsWith('v2') ? ['replicas', 'size'] : ['size', 'replicas']
  const { spec, ...object } = value as { readonly spec?: Record<string, unknown> | null }
  if (spec === undefined || spec === null) return { ...object, apiVersion, ...(spec === null && { spec }) }
  const entries = Object.entries(spec).map(([name, part]) => [name === from ? to : name, part])
  return { ...object, apiVersion, spec: Object.fromEntries(entries) as unknown }
}

/** The type of version v1. */
export const exampleType: { readonly schema: StructSchema } = {
  schema: schemas.get('example.com/v1') as StructSchema,
}
