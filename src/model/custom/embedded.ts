/**
 * Decodes and validates apiVersion, kind and metadata of embedded objects in custom resources
 * (`x-kubernetes-embedded-resource`).
 */
import { structFor } from '#apis/schemas.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { CodecError } from '#meta/codec/error.ts'
import { normalizeUntyped } from '#meta/codec/untyped.ts'
import { parseApiVersion } from '#meta/kind.ts'
import { deepCopy, type ObjectMeta } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1035Label, nameIsPathSegment } from '#meta/validation/names.ts'
import { validateObjectMeta } from '#meta/validation/object-meta.ts'

import { HAS_EMBEDDED, type Structural } from './structural.ts'

export interface CoerceOptions {
  /** Drops fields of a wrong type instead of reporting them: for stored objects. */
  readonly dropInvalid?: boolean
  /** Receives the paths of unknown metadata fields, which are dropped in any case. */
  readonly unknown?: string[]
  /** True if the value itself is such an object. */
  readonly isRoot?: boolean
  readonly path?: FieldPath
}

/** Canonicalizes metadata of embedded objects. Changes `value`; returns the first error. */
export function coerceEmbedded(
  value: JsonValue,
  schema: Structural,
  options: CoerceOptions = {},
): FieldError | undefined {
  const { path = fieldPath(''), isRoot = false, ...inside } = options
  const isObject = isRoot || schema.embedded
  if (!isObject && (schema.has & HAS_EMBEDDED) === 0) return undefined
  if (Array.isArray(value)) {
    const { items } = schema
    if (items === undefined) return undefined
    return firstOf(value.entries(), ([at, item]) => coerceEmbedded(item, items, { ...inside, path: path.index(at) }))
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

function memberOf(schema: Structural, path: FieldPath, name: string): readonly [Structural, FieldPath] | undefined {
  const property = schema.properties.get(name)
  if (property !== undefined) return [property, path.child(name)]
  return typeof schema.additional === 'object' ? [schema.additional, path.key(name)] : undefined
}

function coerceObject(object: JsonObject, path: FieldPath, options: CoerceOptions): FieldError | undefined {
  for (const name of ['apiVersion', 'kind'] as const) {
    if (!Object.hasOwn(object, name) || typeof object[name] === 'string') continue
    if (options.dropInvalid !== true) return path.child(name).invalid(object[name], 'must be a string')
    delete object[name]
  }
  return Object.hasOwn(object, 'metadata') ? coerceMetadata(object, path.child('metadata'), options) : undefined
}

function coerceMetadata(object: JsonObject, path: FieldPath, options: CoerceOptions): FieldError | undefined {
  const given = object['metadata'] as JsonValue
  const read = readMetadata(given)
  if (typeof read !== 'string') {
    object['metadata'] = normalizeUntyped(read.metadata) as JsonObject
    options.unknown?.push(...read.unknown.map((name) => path.child(name).toString()))
    return undefined
  }
  if (options.dropInvalid !== true) return path.invalid(given, read)
  if (isJsonObject(given)) object['metadata'] = soundFields(given)
  return undefined
}

/** Field by field, to keep those that can be decoded. */
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

/** Or the decoding error. */
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

/** For the objects inside `value`, and for the value itself if its schema marks it. */
export function validateEmbedded(value: JsonValue, schema: Structural, path: FieldPath = fieldPath('')): FieldError[] {
  if ((schema.has & HAS_EMBEDDED) === 0) return []
  if (Array.isArray(value)) {
    const { items } = schema
    return items === undefined ? [] : path.each(value, (path, item) => validateEmbedded(item, items, path))
  }
  if (!isJsonObject(value)) return []
  return collectErrors(
    schema.embedded && validateObject(value, path),
    Object.entries(value).flatMap(([name, member]) => {
      const inner = memberOf(schema, path, name)
      return inner === undefined ? [] : validateEmbedded(member, inner[0], inner[1])
    }),
  )
}

/** The rules of every object, for one that is not stored separately. */
function validateObject(object: JsonObject, path: FieldPath): FieldError[] {
  return [
    ...['apiVersion', 'kind'].filter((name) => !Object.hasOwn(object, name)).map((name) => path.child(name).required()),
    ...Object.keys(object).flatMap((name) => members.get(name)?.(object[name] as JsonValue, path.child(name)) ?? []),
  ]
}

type Rule = (value: JsonValue, path: FieldPath) => FieldError[]

const text =
  (rule: (value: string) => string | undefined): Rule =>
  (value, field) => {
    if (typeof value !== 'string') return [field.invalid(value, 'must be a string')]
    const complaint = value === '' ? 'must not be empty' : rule(value)
    return complaint === undefined ? [] : [field.invalid(value, complaint)]
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

function validateMetadata(value: JsonValue, path: FieldPath): FieldError[] {
  const read = readMetadata(value)
  if (typeof read === 'string') return [path.invalid(value, read)]
  const { metadata } = read
  // It needs no name.
  const named = (metadata.name ?? '') === '' ? { ...metadata, name: 'fakename' } : metadata
  const namespaced = (metadata.namespace ?? '') !== ''
  return validateObjectMeta(named, { namespaced, name: nameIsPathSegment, path: path })
}
