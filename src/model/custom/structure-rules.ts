/**
 * Checks that a schema is structural: `allOf`, `anyOf`, `oneOf` and `not` only restrict fields that are defined outside
 * of them. Upstream: apiextensions-apiserver/pkg/apiserver/schema, v1.36.
 */
import { compareText } from '#lib/go/text.ts'
import { compileRegexp, RegexpError } from '#lib/regexp.ts'
import { flatMapSteps, shouldYield, type Steps } from '#lib/time-slicing.ts'
import { semanticEqual } from '#meta/object.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'

import { additionalOf, isPlainScalar, itemsOf, type Schema, someSchema, relevantProperties } from './schema-walk.ts'

/** The position of a schema in an object. */
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

/** The reason why the schema cannot be converted to a structural one; undefined if it can. */
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

/** Sorted by text. */
export function* validateStructural(path: FieldPath, schema: Schema): Steps<FieldError[]> {
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

function* validateInvariants(path: FieldPath, schema: Schema, level: Level): Steps<FieldError[]> {
  if (level !== 'root' && isPlainScalar(schema)) return []
  if (shouldYield()) yield
  const { type = '', properties = {}, additionalProperties } = schema
  const items = itemsOf(schema)
  const additional = additionalOf(schema)
  return collectErrors(
    type === 'array' && items === undefined && path.child('items').required('must be specified'),
    items !== undefined && (yield* validateInvariants(path.child('items'), items, 'item')),
    yield* flatMapSteps(relevantProperties(properties), ([name, one]) =>
      validateInvariants(path.child('properties').key(name), one, 'field'),
    ),
    additionalProperties !== undefined &&
      level === 'root' &&
      path.child('additionalProperties').forbidden('must not be used at the root'),
    additional !== undefined && (yield* validateInvariants(path.child('additionalProperties'), additional, 'field')),
    validateExtensions(path, schema),
    yield* validateValues(path, schema, {
      anyOf: isIntOrString(schema.anyOf),
      first: isIntOrString(schema.allOf?.[0]?.anyOf),
    }),
    validateType(path, schema, level),
    validateEmbedded(path, schema),
    validateMeta(path, schema, level),
  )
}

function validateExtensions(path: FieldPath, schema: Schema): FieldError[] {
  if (schema[INT_OR_STRING] !== true) return []
  return ([PRESERVE, EMBEDDED] as const)
    .filter((name) => schema[name] === true)
    .map((name) => path.child(name).invalid(true, `must be false if ${INT_OR_STRING} is true`))
}

function validateType(path: FieldPath, schema: Schema, level: Level): FieldError[] {
  const { type = '' } = schema
  const field = path.child('type')
  const errors: FieldError[] = []
  if (schema[EMBEDDED] === true && type !== 'object') {
    const detail = `must be object if ${EMBEDDED} is true`
    errors.push(type === '' ? field.required(detail) : field.invalid(type, detail))
  } else if (type === '' && schema[INT_OR_STRING] !== true && schema[PRESERVE] !== true) {
    errors.push(field.required(emptyTypeTexts[level]))
  }
  if (level === 'root' && type !== '' && type !== 'object') {
    errors.push(field.invalid(type, 'must be object at the root'))
  }
  return errors
}

function validateEmbedded(path: FieldPath, schema: Schema): FieldError[] {
  if (schema[EMBEDDED] !== true) return []
  return collectErrors(
    schema.additionalProperties !== undefined &&
      path.child('additionalProperties').forbidden(`must not be used if ${EMBEDDED} is set`),
    schema[PRESERVE] !== true &&
      Object.keys(schema.properties ?? {}).length === 0 &&
      path.child('properties').required(`must not be empty if ${EMBEDDED} is true without ${PRESERVE}`),
  )
}

/** Fields that every object has need not be declared. */
function validateMeta(path: FieldPath, schema: Schema, level: Level): FieldError[] {
  const { properties = {} } = schema
  const isObject = level === 'root' || schema[EMBEDDED] === true
  const at = (name: string): FieldPath => path.child('properties').key(name)
  const texts = (['kind', 'apiVersion'] as const).flatMap((name) => {
    const type = own(properties, name)?.type ?? ''
    const wrong = isObject && own(properties, name) !== undefined && type !== 'string'
    return wrong ? [at(name).child('type').invalid(type, 'must be string')] : []
  })
  const metadata = own(properties, 'metadata')
  if (metadata === undefined) return texts
  const wrong = isObject && metadata.type !== 'object'
  const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified'
  return collectErrors(
    texts,
    wrong &&
      at('metadata')
        .child('type')
        .invalid(metadata.type ?? '', 'must be object'),
    level === 'root' && restrictsMore(metadata) && at('metadata').forbidden(detail),
  )
}

function own(properties: Readonly<Record<string, Schema>>, name: string): Schema | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined
}

const sayable = ['type', 'default', 'properties']

function restrictsMore(metadata: Schema): boolean {
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

/** The only `anyOf` that may name types: the form of `x-kubernetes-int-or-string` for other tools. */
function isIntOrString(anyOf: readonly Schema[] | undefined): boolean {
  return semanticEqual(anyOf, [{ type: 'integer' }, { type: 'string' }])
}

/** The accepted `anyOf`: its own, or that of its first `allOf`. */
interface SkipOptions {
  readonly anyOf: boolean
  readonly first: boolean
}

const nothing: SkipOptions = { anyOf: false, first: false }

function* validateValues(path: FieldPath, schema: Schema, skipped: SkipOptions): Steps<FieldError[]> {
  const { allOf = [], anyOf = [], oneOf = [], not, pattern = '' } = schema
  const at = (name: string, place: number): FieldPath => path.child(name).index(place)
  return collectErrors(
    !skipped.anyOf && (yield* flatMapSteps(anyOf, (one, place) => validateNested(at('anyOf', place), one))),
    yield* flatMapSteps(allOf, (one, place) =>
      validateNested(at('allOf', place), one, { anyOf: skipped.first && place === 0, first: false }),
    ),
    yield* flatMapSteps(oneOf, (one, place) => validateNested(at('oneOf', place), one)),
    not !== undefined && (yield* validateNested(path.child('not'), not)),
    pattern !== '' && (yield* validatePattern(path.child('pattern'), pattern)),
  )
}

/** Compiling a pattern takes as long as validating a hundred schemas. */
function* validatePattern(path: FieldPath, pattern: string): Steps<FieldError[]> {
  yield
  try {
    compileRegexp(pattern)
    return []
  } catch (error) {
    if (!(error instanceof RegexpError)) throw error
    return [path.invalid(pattern, `must be a valid regular expression, but isn't: ${error.message}`)]
  }
}

/** Forbidden fields of a nested schema, with upstream's texts. */
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

function* validateNested(path: FieldPath, schema: Schema, skipped: SkipOptions = nothing): Steps<FieldError[]> {
  if (shouldYield()) yield
  const items = itemsOf(schema)
  const { properties = {} } = schema
  const forbiddenRules = nestedRules.filter(([field]) => {
    const value = schema[field]
    return field === 'default' ? value !== undefined && value !== null : value !== false && isPresent(value)
  })
  return collectErrors(
    yield* validateValues(path, schema, skipped),
    items !== undefined && (yield* validateNested(path.child('items'), items)),
    yield* flatMapSteps(Object.entries(properties), ([name, one]) =>
      validateNested(path.child('properties').key(name), one),
    ),
    forbiddenRules.map(([field, text]) => path.child(field).forbidden(text)),
    own(properties, 'metadata') !== undefined &&
      path.child('properties').key('metadata').forbidden('must not be specified in a nested context'),
  )
}

/** Texts and lists count if they are not empty; a schema counts even if it is empty. */
function isPresent(value: unknown): boolean {
  return value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)
}

type PathAndSchema = readonly [path: FieldPath, schema: Schema]

/** Every field in the value validations `v` must be defined in the schema `s`. */
function* validateCompleteness(
  [sPath, s]: readonly [FieldPath, Schema | undefined],
  [vPath, v]: PathAndSchema,
): Steps<FieldError[]> {
  if (shouldYield()) yield
  if (s === undefined) return [sPath.required(`because it is defined in ${vPath}`)]
  const lists = (['allOf', 'anyOf', 'oneOf'] as const).flatMap((name) =>
    (v[name] ?? []).map((one, at): PathAndSchema => [vPath.child(name).index(at), one]),
  )
  const all: readonly PathAndSchema[] = v.not === undefined ? lists : [[vPath.child('not'), v.not], ...lists]
  return yield* flatMapSteps(all, (nested) => validateNestedCompleteness([sPath, s], nested))
}

function* validateNestedCompleteness([sPath, s]: PathAndSchema, [vPath, v]: PathAndSchema): Steps<FieldError[]> {
  const items = itemsOf(v)
  const named = (path: FieldPath, name: string): FieldPath => path.child('properties').key(name)
  function* inside(
    [path, schema]: readonly [FieldPath, Schema | undefined],
    nested: PathAndSchema,
  ): Steps<FieldError[]> {
    if (schema === undefined) return [path.required(`because it is defined in ${nested[0]}`)]
    return yield* validateNestedCompleteness([path, schema], nested)
  }
  return collectErrors(
    yield* validateCompleteness([sPath, s], [vPath, v]),
    items !== undefined && (yield* inside([sPath.child('items'), itemsOf(s)], [vPath.child('items'), items])),
    yield* flatMapSteps(Object.entries(v.properties ?? {}), ([name, one]) =>
      inside([named(sPath, name), own(s.properties ?? {}, name)], [named(vPath, name), one]),
    ),
  )
}
