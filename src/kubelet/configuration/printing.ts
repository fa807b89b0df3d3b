/** Prints a KubeletConfiguration for `/configz`, and as the base of drop-ins. Pure. */
import type { FieldSchema, StructSchema } from '#meta/schema.ts'

import { CONFIGURATION, type GivenConfiguration, GROUP_VERSION, type KubeletConfiguration } from './configuration.ts'

/** In upstream's field order, without empty fields. */
export function shownConfiguration(config: KubeletConfiguration): object {
  return { kind: CONFIGURATION.kind, apiVersion: GROUP_VERSION, ...plainConfiguration(config) }
}

export function plainConfiguration(config: KubeletConfiguration): GivenConfiguration {
  return shown(config, CONFIGURATION.schema)
}

function shown(value: GivenConfiguration, { fields }: StructSchema): GivenConfiguration {
  const entries = [...fields.values()].flatMap((field) => {
    const own = value[field.name]
    return own === undefined || isEmpty(own, field) ? [] : [[field.name, shownField(own, field)]]
  })
  return Object.fromEntries(entries) as GivenConfiguration
}

function shownField(value: unknown, { schema }: FieldSchema): unknown {
  if (schema.type === 'struct') return shown(value as GivenConfiguration, schema)
  if (schema.type === 'list' && schema.items.type === 'struct') {
    const { items } = schema
    return (value as readonly GivenConfiguration[]).map((one) => shown(one, items))
  }
  return value
}

/** True for a zero value of a field that is not a pointer, and for empty lists and maps, as with Go's omitempty. */
function isEmpty(value: unknown, { name, pointer, schema }: FieldSchema): boolean {
  if (schema.type === 'list') return (value as readonly unknown[]).length === 0
  if (schema.type === 'map') return Object.keys(value as object).length === 0
  const isAlways = ALWAYS.has(schema.type) || ALWAYS.has(name)
  return !pointer && schema.type !== 'struct' && !isAlways && [0, '', false].includes(value as string)
}

/** Fields that Go always writes. */
const ALWAYS = new Set(['duration', 'verbosity'])
