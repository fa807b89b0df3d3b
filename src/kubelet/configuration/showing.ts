/** A KubeletConfiguration as others see it: on `/configz`, and as what drop-in files are merged into. Pure. */
import type { FieldSchema, StructSchema } from '#meta/schema.ts'

import type { GivenConfiguration, KubeletConfiguration } from './configuration.ts'
import { CONFIGURATION, GROUP_VERSION } from './fields.ts'

/** In upstream's order of fields, without what is empty. */
export function shownConfiguration(config: KubeletConfiguration): object {
  return { kind: CONFIGURATION.kind, apiVersion: GROUP_VERSION, ...plainConfiguration(config) }
}

export function plainConfiguration(config: KubeletConfiguration): GivenConfiguration {
  return shown(config as unknown as GivenConfiguration, CONFIGURATION.schema)
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

/** Zero, where zero is nothing; an empty list of a field that may be none is left out all the same, as Go does. */
function isEmpty(value: unknown, { name, pointer, schema }: FieldSchema): boolean {
  if (schema.type === 'list') return (value as readonly unknown[]).length === 0
  if (schema.type === 'map') return Object.keys(value as object).length === 0
  const isAlways = ALWAYS.has(schema.type) || ALWAYS.has(name)
  return !pointer && schema.type !== 'struct' && !isAlways && [0, '', false].includes(value as string)
}

/** Go writes these whatever they are. */
const ALWAYS = new Set(['duration', 'verbosity'])
