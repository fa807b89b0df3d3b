/**
 * The CEL type of a custom resource schema, with the size limits that bound the cost of rules. Fields are resolved on
 * first use.
 */
import { BOOL, type CelType, DOUBLE, INT, type ListType, type SimpleType } from '#cel/type.ts'
import { byteLength } from '#lib/go/text.ts'

import { lazyObject } from '../expressions/declared-type.ts'
import { type Structural, structuralOf } from './structural.ts'

/** Upstream's request size limit, which bounds every value. */
export const MAX_REQUEST_BYTES: number = 3 * 2 ** 20

/** The name of objects in messages; upstream's contains an arbitrary number. */
const SELF_TYPE = 'selfType0'

/** Undefined for values that expressions cannot see: untyped parts, and lists and maps of those. */
export function celTypeOf(schema: Structural, isResource: boolean): CelType | undefined {
  return typeOf(schema, isResource, SELF_TYPE)
}

function typeOf(schema: Structural, isResource: boolean, name: string): CelType | undefined {
  if (schema.intOrString) return { kind: 'dyn', maxSize: textSize(schema) }
  switch (schema.type) {
    case 'array':
      return listType(schema, name)
    case 'object':
      return typeof schema.additional === 'object'
        ? mapType(schema, schema.additional, name)
        : objectType(isResource ? withMetadata(schema) : schema, name)
    case 'string':
      return textType(schema)
    default:
      return scalars[schema.type]
  }
}

/** These have no size in the estimate. */
const scalars: Readonly<Record<string, CelType>> = {
  boolean: { ...BOOL, maxSize: 0 },
  number: { ...DOUBLE, maxSize: 0 },
  integer: { ...INT, maxSize: 0 },
}

function listType(schema: Structural, name: string): CelType | undefined {
  const { items, values } = schema
  if (items === undefined) return undefined
  const element = typeOf(items, items.embedded, `${name}.@idx`)
  if (element === undefined) return undefined
  const least = minSizeOf(items, items.embedded) ?? 0
  const maxSize = atLeastZero(values?.maxItems) ?? Math.floor((MAX_REQUEST_BYTES - 2) / (least + 1))
  const semantics = semanticsOf(schema)
  return { kind: 'list', element, maxSize, ...(semantics && { semantics }) }
}

function semanticsOf({ listType: type, mapKeys }: Structural): ListType['semantics'] {
  if (type === 'set') return { listType: 'set' }
  return type === 'map' ? { listType: 'map', keys: mapKeys } : undefined
}

function mapType({ values }: Structural, additional: Structural, name: string): CelType | undefined {
  const value = typeOf(additional, additional.embedded, `${name}.@elem`)
  if (value === undefined) return undefined
  const least = minSizeOf(additional, additional.embedded) ?? 0
  const maxSize = atLeastZero(values?.maxProperties) ?? Math.floor((MAX_REQUEST_BYTES - 2) / (least + 6))
  return { kind: 'map', key: { kind: 'string', maxSize: 0 }, value, maxSize }
}

function objectType(schema: Structural, name: string): CelType {
  const fields = lazyObject(name, schema.properties.keys(), (jsonName, field) => {
    const property = schema.properties.get(jsonName)
    return property && typeOf(property, property.embedded, `${name}.${field}`)
  })
  return { ...fields, maxSize: 0 }
}

/** Formats that change the type of a text, and its size as JSON. */
const formatTypes: Readonly<Record<string, readonly [kind: SimpleType['kind'], maxSize: number]>> = {
  duration: ['duration', 32],
  date: ['timestamp', 12],
  'date-time': ['timestamp', 32],
}

function textType(schema: Structural): CelType {
  const { format = '' } = schema.values ?? {}
  const special = formatTypes[format]
  if (special !== undefined) return { kind: special[0], maxSize: special[1] }
  if (format === 'byte')
    return { kind: 'bytes', maxSize: atLeastZero(schema.values?.maxLength) ?? MAX_REQUEST_BYTES - 2 }
  return { kind: 'string', maxSize: textSize(schema) }
}

/** In bytes: a character has up to four. */
function textSize({ values, intOrString }: Structural): number {
  const length = atLeastZero(values?.maxLength)
  if (length !== undefined) return length * 4
  if (intOrString || values?.enum === undefined) return MAX_REQUEST_BYTES - 2
  return Math.max(0, ...values.enum.map((one) => (typeof one === 'string' ? byteLength(one) : 0)))
}

function atLeastZero(limit: number | undefined): number | undefined {
  return limit === undefined ? undefined : Math.max(0, limit)
}

const textSizes: Readonly<Record<string, number>> = { duration: 3, date: 12, 'date-time': 21 }

/** The minimum size of a value as JSON; undefined for values that expressions cannot see. */
export function minSizeOf(schema: Structural, isResource: boolean): number | undefined {
  if (schema.intOrString) return 1
  switch (schema.type) {
    case 'string':
      return textSizes[schema.values?.format ?? ''] ?? 2
    case 'boolean':
      return 4
    case 'number':
    case 'integer':
      return 1
    case 'array':
      return schema.items && isVisible(schema.items) ? 2 : undefined
    case 'object':
      return minObjectSize(isResource ? withMetadata(schema) : schema)
    default:
      return undefined
  }
}

/** True if it has a type. */
function isVisible({ intOrString, type, items, additional }: Structural): boolean {
  if (intOrString || type in scalars || type === 'string') return true
  if (type === 'array') return items !== undefined && isVisible(items)
  return type === 'object' && (typeof additional !== 'object' || isVisible(additional))
}

function minObjectSize(schema: Structural): number | undefined {
  if (typeof schema.additional === 'object') return isVisible(schema.additional) ? 2 : undefined
  let size = 2
  for (const name of new Set(schema.values?.required)) {
    const property = schema.properties.get(name)
    if (property === undefined || property.default !== undefined) continue
    const least = minSizeOf(property, property.embedded)
    if (least !== undefined) size += byteLength(name) + least + 4
  }
  return size
}

const text = structuralOf({ type: 'string' })
const metadata = structuralOf({
  type: 'object',
  properties: { name: { type: 'string' }, generateName: { type: 'string' } },
})
const resources = new WeakMap<Structural, Structural>()

/** The schema of a whole object, with the fields that expressions see in every object. */
export function withMetadata(schema: Structural): Structural {
  const known = resources.get(schema)
  if (known !== undefined) return known
  const made = declaresMetadata(schema)
    ? schema
    : {
        ...schema,
        properties: new Map([...schema.properties, ['kind', text], ['apiVersion', text], ['metadata', metadata]]),
      }
  resources.set(schema, made)
  return made
}

function declaresMetadata({ properties }: Structural): boolean {
  const meta = properties.get('metadata')
  const isText = (schema: Structural | undefined): boolean => schema?.type === 'string'
  return (
    meta?.type === 'object' &&
    [properties.get('kind'), properties.get('apiVersion')].every(isText) &&
    [meta.properties.get('name'), meta.properties.get('generateName')].every(isText)
  )
}
