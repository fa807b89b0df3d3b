/**
 * Objects inside of custom resources (`x-kubernetes-embedded-resource`): they have apiVersion, kind and metadata like every
 * object, which are read by the same schema and judged by the same rules.
 */
import { structFor } from '#apis/schemas.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json-value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { CodecError } from '#meta/codec/error.ts'
import { normalizeUntyped } from '#meta/codec/untyped.ts'
import { parseApiVersion } from '#meta/kind.ts'
import { deepCopy, type ObjectMeta } from '#meta/object.ts'
import { child, type FieldError, index, invalid, key, required } from '#meta/validation/field-error.ts'
import { dns1035Label, nameIsPathSegment } from '#meta/validation/names.ts'
import { validateObjectMeta } from '#meta/validation/object-meta.ts'

import { HAS_EMBEDDED, type Structural } from './structural.ts'

export interface CoerceOptions {
  /** Fields of a wrong type go instead of being complained about: for what is stored. */
  readonly dropInvalid?: boolean
  /** Gets the paths of fields that metadata does not have; they go in any case. */
  readonly unknown?: string[]
  /** Whether the value itself is such an object. Its metadata is read like those inside. */
  readonly isRoot?: boolean
  readonly path?: string
}

/** Brings metadata of embedded objects into canonical form. Changes `value`; returns the first thing that cannot be. */
export function coerceEmbedded(
  value: JsonValue,
  schema: Structural,
  options: CoerceOptions = {},
): FieldError | undefined {
  const { path = '', isRoot = false, ...inside } = options
  const isObject = isRoot || schema.embedded
  if (!isObject && (schema.has & HAS_EMBEDDED) === 0) return undefined
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return undefined
    return firstOf(value.entries(), ([at, item]) => coerceEmbedded(item, items, { ...inside, path: index(path, at) }))
  }
  if (!isJsonObject(value)) return undefined
  const own = isObject ? coerceObject(value, path, options) : undefined
  if (own !== undefined) return own
  return firstOf(Object.entries(value), ([name, member]) => {
    const inner = memberOf(schema, path, name)
    return inner && coerceEmbedded(member, inner[0], { ...inside, path: inner[1] })
  })
}

function firstOf<T>(all: Iterable<T>, look: (one: T) => FieldError | undefined): FieldError | undefined {
  for (const one of all) {
    const found = look(one)
    if (found !== undefined) return found
  }
  return undefined
}

function memberOf(schema: Structural, path: string, name: string): readonly [Structural, string] | undefined {
  const property = schema.properties.get(name)
  if (property !== undefined) return [property, child(path, name)]
  return typeof schema.additional === 'object' ? [schema.additional, key(path, name)] : undefined
}

function coerceObject(object: JsonObject, path: string, options: CoerceOptions): FieldError | undefined {
  for (const name of ['apiVersion', 'kind'] as const) {
    if (!Object.hasOwn(object, name) || typeof object[name] === 'string') continue
    if (options.dropInvalid !== true) return invalid(child(path, name), object[name], 'must be a string')
    delete object[name]
  }
  return Object.hasOwn(object, 'metadata') ? coerceMetadata(object, child(path, 'metadata'), options) : undefined
}

function coerceMetadata(object: JsonObject, path: string, options: CoerceOptions): FieldError | undefined {
  const given = object['metadata'] as JsonValue
  const read = readMetadata(given)
  if (typeof read !== 'string') {
    object['metadata'] = normalizeUntyped(read.metadata) as JsonObject
    options.unknown?.push(...read.unknown.map((name) => child(path, name)))
    return undefined
  }
  if (options.dropInvalid !== true) return invalid(path, given, read)
  if (isJsonObject(given)) object['metadata'] = soundFields(given)
  return undefined
}

/** Field by field: each that can be read alone. */
function soundFields(given: JsonObject): JsonObject {
  const sound = Object.entries(given).flatMap(([name, value]) => {
    const read = readMetadata({ [name]: value })
    return typeof read === 'string' ? [] : Object.entries(read.metadata)
  })
  return Object.fromEntries(sound)
}

interface ReadMetadata {
  readonly metadata: ObjectMeta
  readonly unknown: readonly string[]
}

/** Or why it cannot be read. */
function readMetadata(given: JsonValue): ReadMetadata | string {
  const offences: string[] = []
  try {
    const metadata = decodeValue(structFor('meta.v1', 'ObjectMeta'), deepCopy(given), 'Warn', {
      offences,
    }) as ObjectMeta
    const unknown = offences
      .map((offence) => /^unknown field "(.*)"$/.exec(offence)?.[1])
      .filter((one) => one !== undefined)
    return { metadata, unknown }
  } catch (error) {
    if (!(error instanceof CodecError)) throw error
    return error.message
  }
}

/** Of the objects inside of `value`, and of the value itself where its schema says that it is one. */
export function validateEmbedded(value: JsonValue, schema: Structural, path = ''): FieldError[] {
  if ((schema.has & HAS_EMBEDDED) === 0) return []
  if (Array.isArray(value)) {
    const { items } = schema
    return items === undefined ? [] : value.flatMap((item, at) => validateEmbedded(item, items, index(path, at)))
  }
  if (!isJsonObject(value)) return []
  return [
    ...(schema.embedded ? validateObject(value, path) : []),
    ...Object.entries(value).flatMap(([name, member]) => {
      const inner = memberOf(schema, path, name)
      return inner === undefined ? [] : validateEmbedded(member, inner[0], inner[1])
    }),
  ]
}

/** The rules that every object has to keep, for one that is not stored by itself. */
function validateObject(object: JsonObject, path: string): FieldError[] {
  return [
    ...['apiVersion', 'kind'].filter((name) => !Object.hasOwn(object, name)).map((name) => required(child(path, name))),
    ...Object.keys(object).flatMap((name) => members.get(name)?.(object[name] as JsonValue, child(path, name)) ?? []),
  ]
}

type Rule = (value: JsonValue, field: string) => FieldError[]

const text =
  (rule: (value: string) => string | undefined): Rule =>
  (value, field) => {
    if (typeof value !== 'string') return [invalid(field, value, 'must be a string')]
    const complaint = value === '' ? 'must not be empty' : rule(value)
    return complaint === undefined ? [] : [invalid(field, value, complaint)]
  }

const members = new Map<string, Rule>([
  ['apiVersion', text(apiVersionComplaint)],
  ['kind', text(kindComplaint)],
  ['metadata', validateMetadata],
])

function apiVersionComplaint(apiVersion: string): string | undefined {
  try {
    parseApiVersion(apiVersion)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

function kindComplaint(kind: string): string | undefined {
  const complaints = dns1035Label(kind.toLowerCase())
  return complaints.length === 0
    ? undefined
    : `may have mixed case, but should otherwise match: ${complaints.join(',')}`
}

function validateMetadata(value: JsonValue, field: string): FieldError[] {
  const read = readMetadata(value)
  if (typeof read === 'string') return [invalid(field, value, read)]
  const { metadata } = read
  // It need not have a name.
  const named = (metadata.name ?? '') === '' ? { ...metadata, name: 'fakename' } : metadata
  const namespaced = (metadata.namespace ?? '') !== ''
  return validateObjectMeta(named, { namespaced, name: nameIsPathSegment, path: field })
}
