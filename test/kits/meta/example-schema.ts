/** A schema for tests with every merge strategy. */
import type { FieldSchema, Schema, StructSchema } from '#meta/schema.ts'

const text: Schema = { type: 'string', goType: 'string' }

function field(name: string, schema: Schema, rules: Partial<FieldSchema> = {}): FieldSchema {
  return { name, schema, required: false, pointer: false, omitEmpty: true, ...rules }
}

function struct(name: string, ...fields: FieldSchema[]): StructSchema {
  const named = new Map(fields.map((each) => [each.name, each]))
  return { type: 'struct', goType: `v1.${name}`, fields: named, mapType: 'granular', preserveUnknown: false }
}

function list(items: Schema): Schema {
  return { type: 'list', items, pointerItems: false }
}

const env = struct('EnvVar', field('name', text), field('value', text))
const merge = { patchStrategy: ['merge'], patchMergeKey: 'name' } as const
const container = struct(
  'Container',
  field('name', text),
  field('image', text),
  field('command', list(text)),
  field('env', list(env), merge),
)
const volume = struct('Volume', field('name', text), field('emptyDir', env), field('hostPath', env))
/** A partial pod. */
export const pod: StructSchema = struct(
  'PodSpec',
  field('containers', list(container), merge),
  field('volumes', list(volume), { patchStrategy: ['merge', 'retainKeys'], patchMergeKey: 'name' }),
  field('finalizers', list(text), { patchStrategy: ['merge'] }),
  field('tolerations', list(env)),
  field('keyless', list(env), { patchStrategy: ['merge'] }),
  field('labels', { type: 'map', values: text }),
  field('nested', { type: 'map', values: { type: 'map', values: text } }),
  field('strategy', struct('Strategy', field('type', text), field('rolling', env)), { patchStrategy: ['retainKeys'] }),
  field('whole', env, { patchStrategy: ['replace'] }),
  field('raw', { type: 'any', goType: 'runtime.RawExtension' }),
  field('host', text),
)
