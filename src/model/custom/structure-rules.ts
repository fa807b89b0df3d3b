/**
 * Structural schemas: what a value looks like is said once, outside of `allOf`, `anyOf`, `oneOf` and `not`, which may
 * only say more about fields that are named there. Only then can the server prune and default.
 * Upstream: apiextensions-apiserver/pkg/apiserver/schema, v1.36.
 */
import { compareText } from '#lib/go-text.ts'
import { compileRegexp, RegexpError } from '#lib/regexp.ts'
import { flatMapSteps, isDue, type Steps } from '#lib/slices.ts'
import { semanticEqual } from '#meta/object.ts'
import {
  child,
  type FieldError,
  fieldErrorText,
  forbidden,
  index,
  invalid,
  key,
  required,
} from '#meta/validation/field-error.ts'

import { additionalOf, isPlainScalar, itemsOf, type Schema, someSchema, telling } from './schema-walk.ts'

/** Where in an object a schema stands. */
type Level = 'root' | 'item' | 'field'

const PRESERVE = 'x-kubernetes-preserve-unknown-fields'
const EMBEDDED = 'x-kubernetes-embedded-resource'
const INT_OR_STRING = 'x-kubernetes-int-or-string'

const unsupported = [
  ['id', 'id'],
  ['$schema', 'schema'],
  ['$ref', '$ref'],
  ['patternProperties', 'patternProperties'],
  ['dependencies', 'dependencies'],
  ['additionalItems', 'additionalItems'],
  ['definitions', 'definitions'],
] as const

/** Why the schema cannot even be looked at as a structural one; undefined when it can. */
export function structuralObstacle(schema: Schema): string | undefined {
  let obstacle: string | undefined
  someSchema(schema, (one) => {
    const field = unsupported.find(
      ([name]) => isSet(one[name]) || (name === 'additionalItems' && one[name] !== undefined),
    )
    if (field !== undefined) obstacle = `OpenAPIV3Schema '${field[1]}' is not supported`
    else if (Array.isArray(one.items)) obstacle = "OpenAPIV3Schema 'items' must be a schema, but is an array"
    else if (one[PRESERVE] === false) obstacle = `internal error: '${PRESERVE}' must be true or undefined`
    return obstacle !== undefined
  })
  return obstacle
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === '') return false
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0
}

/** In the order of their texts. */
export function* validateStructural(path: string, schema: Schema): Steps<FieldError[]> {
  const invariants = yield* validateInvariants(path, schema, 'root')
  const completeness = yield* validateCompleteness([path, schema], [path, schema])
  const texts = new Map([...invariants, ...completeness].map((error) => [error, fieldErrorText(error)]))
  return [...texts].sort(([, a], [, b]) => compareText(a, b)).map(([error]) => error)
}

const emptyTypeTexts: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
}

function* validateInvariants(path: string, schema: Schema, level: Level): Steps<FieldError[]> {
  if (level !== 'root' && isPlainScalar(schema)) return []
  if (isDue()) yield
  const { type = '', properties = {}, additionalProperties } = schema
  const items = itemsOf(schema)
  const additional = additionalOf(schema)
  return [
    ...(type === 'array' && items === undefined ? [required(child(path, 'items'), 'must be specified')] : []),
    ...(items === undefined ? [] : yield* validateInvariants(child(path, 'items'), items, 'item')),
    ...(yield* flatMapSteps(telling(properties), ([name, one]) =>
      validateInvariants(key(child(path, 'properties'), name), one, 'field'),
    )),
    ...(additionalProperties !== undefined && level === 'root'
      ? [forbidden(child(path, 'additionalProperties'), 'must not be used at the root')]
      : []),
    ...(additional === undefined
      ? []
      : yield* validateInvariants(child(path, 'additionalProperties'), additional, 'field')),
    ...validateExtensions(path, schema),
    ...(yield* validateValues(path, schema, {
      anyOf: isIntOrString(schema.anyOf),
      first: isIntOrString(schema.allOf?.[0]?.anyOf),
    })),
    ...validateType(path, schema, level),
    ...validateEmbedded(path, schema),
    ...validateMeta(path, schema, level),
  ]
}

function validateExtensions(path: string, schema: Schema): FieldError[] {
  if (schema[INT_OR_STRING] !== true) return []
  return ([PRESERVE, EMBEDDED] as const)
    .filter((name) => schema[name] === true)
    .map((name) => invalid(child(path, name), true, `must be false if ${INT_OR_STRING} is true`))
}

function validateType(path: string, schema: Schema, level: Level): FieldError[] {
  const { type = '' } = schema
  const field = child(path, 'type')
  const errors: FieldError[] = []
  if (schema[EMBEDDED] === true && type !== 'object') {
    const detail = `must be object if ${EMBEDDED} is true`
    errors.push(type === '' ? required(field, detail) : invalid(field, type, detail))
  } else if (type === '' && schema[INT_OR_STRING] !== true && schema[PRESERVE] !== true) {
    errors.push(required(field, emptyTypeTexts[level]))
  }
  if (level === 'root' && type !== '' && type !== 'object') {
    errors.push(invalid(field, type, 'must be object at the root'))
  }
  return errors
}

function validateEmbedded(path: string, schema: Schema): FieldError[] {
  if (schema[EMBEDDED] !== true) return []
  const errors: FieldError[] = []
  if (schema.additionalProperties !== undefined) {
    errors.push(forbidden(child(path, 'additionalProperties'), `must not be used if ${EMBEDDED} is set`))
  }
  if (schema[PRESERVE] !== true && Object.keys(schema.properties ?? {}).length === 0) {
    const detail = `must not be empty if ${EMBEDDED} is true without ${PRESERVE}`
    errors.push(required(child(path, 'properties'), detail))
  }
  return errors
}

/** What every object has is there without being said. */
function validateMeta(path: string, schema: Schema, level: Level): FieldError[] {
  const { properties = {} } = schema
  const isObject = level === 'root' || schema[EMBEDDED] === true
  const at = (name: string): string => key(child(path, 'properties'), name)
  const texts = (['kind', 'apiVersion'] as const).flatMap((name) => {
    const type = own(properties, name)?.type ?? ''
    const wrong = isObject && own(properties, name) !== undefined && type !== 'string'
    return wrong ? [invalid(child(at(name), 'type'), type, 'must be string')] : []
  })
  const metadata = own(properties, 'metadata')
  if (metadata === undefined) return texts
  const wrong = isObject && metadata.type !== 'object'
  const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
  return [
    ...texts,
    ...(wrong ? [invalid(child(at('metadata'), 'type'), metadata.type ?? '', 'must be object')] : []),
    ...(level === 'root' && saysTooMuch(metadata) ? [forbidden(at('metadata'), detail)] : []),
  ]
}

function own(properties: Readonly<Record<string, Schema>>, name: string): Schema | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined
}

const sayable = ['type', 'default', 'properties']

function saysTooMuch(metadata: Schema): boolean {
  const { properties = {} } = metadata
  const names = Object.keys(properties)
  const isMore = names.some((name) => name !== 'name' && name !== 'generateName')
  return (
    isMore ||
    Object.entries(metadata).some(
      ([name, value]) => !sayable.includes(name) && value !== undefined && value !== false && value !== '',
    )
  )
}

/** The one `anyOf` that may name types: what `x-kubernetes-int-or-string` means to other tools. */
function isIntOrString(anyOf: readonly Schema[] | undefined): boolean {
  return semanticEqual(anyOf, [{ type: 'integer' }, { type: 'string' }])
}

/** Which `anyOf` are let pass as they are: its own, that of its first `allOf`. */
interface Skipped {
  readonly anyOf: boolean
  readonly first: boolean
}

const nothing: Skipped = { anyOf: false, first: false }

function* validateValues(path: string, schema: Schema, skipped: Skipped): Steps<FieldError[]> {
  const { allOf = [], anyOf = [], oneOf = [], not, pattern = '' } = schema
  const at = (name: string, place: number): string => index(child(path, name), place)
  return [
    ...(skipped.anyOf ? [] : yield* flatMapSteps(anyOf, (one, place) => validateNested(at('anyOf', place), one))),
    ...(yield* flatMapSteps(allOf, (one, place) =>
      validateNested(at('allOf', place), one, { anyOf: skipped.first && place === 0, first: false }),
    )),
    ...(yield* flatMapSteps(oneOf, (one, place) => validateNested(at('oneOf', place), one))),
    ...(not === undefined ? [] : yield* validateNested(child(path, 'not'), not)),
    ...(pattern === '' ? [] : yield* validatePattern(child(path, 'pattern'), pattern)),
  ]
}

/** Compiling one takes as long as looking at a hundred schemas. */
function* validatePattern(field: string, pattern: string): Steps<FieldError[]> {
  yield
  try {
    compileRegexp(pattern)
    return []
  } catch (error) {
    if (!(error instanceof RegexpError)) throw error
    return [invalid(field, pattern, `must be a valid regular expression, but isn't: ${error.message}`)]
  }
}

/** What a nested schema must not say, and how upstream words it. */
const nestedRules: readonly (readonly [field: keyof Schema, text: string])[] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  [PRESERVE, 'must be false to be structural'],
  [EMBEDDED, 'must be false to be structural'],
  [INT_OR_STRING, 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
]

function* validateNested(path: string, schema: Schema, skipped: Skipped = nothing): Steps<FieldError[]> {
  if (isDue()) yield
  const items = itemsOf(schema)
  const { properties = {} } = schema
  const said = nestedRules.filter(([field]) => {
    const value = schema[field]
    return field === 'default' ? value !== undefined && value !== null : value !== false && isSaid(value)
  })
  return [
    ...(yield* validateValues(path, schema, skipped)),
    ...(items === undefined ? [] : yield* validateNested(child(path, 'items'), items)),
    ...(yield* flatMapSteps(Object.entries(properties), ([name, one]) =>
      validateNested(key(child(path, 'properties'), name), one),
    )),
    ...said.map(([field, text]) => forbidden(child(path, field), text)),
    ...(own(properties, 'metadata') === undefined
      ? []
      : [forbidden(key(child(path, 'properties'), 'metadata'), 'must not be specified in a nested context')]),
  ]
}

/** Texts and lists count when there is something in them; a schema counts even when it says nothing. */
function isSaid(value: unknown): boolean {
  return value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)
}

type Placed = readonly [path: string, schema: Schema]

/** Every field named in the values `v` of a schema must be named in the schema `s` itself. */
function* validateCompleteness(
  [sPath, s]: readonly [string, Schema | undefined],
  [vPath, v]: Placed,
): Steps<FieldError[]> {
  if (isDue()) yield
  if (s === undefined) return [required(sPath, `because it is defined in ${vPath}`)]
  const lists = (['allOf', 'anyOf', 'oneOf'] as const).flatMap((name) =>
    (v[name] ?? []).map((one, at): Placed => [index(child(vPath, name), at), one]),
  )
  const all: readonly Placed[] = v.not === undefined ? lists : [[child(vPath, 'not'), v.not], ...lists]
  return yield* flatMapSteps(all, (nested) => validateNestedCompleteness([sPath, s], nested))
}

function* validateNestedCompleteness([sPath, s]: Placed, [vPath, v]: Placed): Steps<FieldError[]> {
  const items = itemsOf(v)
  const named = (path: string, name: string): string => key(child(path, 'properties'), name)
  function* inside([path, schema]: readonly [string, Schema | undefined], nested: Placed): Steps<FieldError[]> {
    if (schema === undefined) return [required(path, `because it is defined in ${nested[0]}`)]
    return yield* validateNestedCompleteness([path, schema], nested)
  }
  return [
    ...(yield* validateCompleteness([sPath, s], [vPath, v])),
    ...(items === undefined ? [] : yield* inside([child(sPath, 'items'), itemsOf(s)], [child(vPath, 'items'), items])),
    ...(yield* flatMapSteps(Object.entries(v.properties ?? {}), ([name, one]) =>
      inside([named(sPath, name), own(s.properties ?? {}, name)], [named(vPath, name), one]),
    )),
  ]
}
