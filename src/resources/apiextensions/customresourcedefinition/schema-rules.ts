/** Validates one OpenAPI schema in a CustomResourceDefinition, and its nested schemas. */
import type { ValidationRule } from '#apis/apiextensions/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { flatMapSteps, shouldYield, type Steps } from '#lib/time-slicing.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { findField } from '#model/custom/field-path.ts'
import { additionalOf, isPlainScalar, itemsOf, type Schema, relevantProperties } from '#model/custom/schema-walk.ts'
import { structuralOf } from '#model/custom/structural.ts'
import { structuralObstacle } from '#model/custom/structure-rules.ts'

import { hasLineBreak, isBlank } from '../../expressions.ts'
import { internalItems } from './internal-form.ts'

const LIST_TYPE = 'x-kubernetes-list-type'
const MAP_TYPE = 'x-kubernetes-map-type'
const MAP_KEYS = 'x-kubernetes-list-map-keys'
const RULES = 'x-kubernetes-validations'
const EMBEDDED = 'x-kubernetes-embedded-resource'
const PRESERVE = 'x-kubernetes-preserve-unknown-fields'

/** Options for all schemas; an update may keep faults of the old object. */
export interface SchemaOptions {
  readonly knownTypes: boolean
  readonly atomicSets: boolean
  readonly soundMapKeys: boolean
  /** Collects the paths of schemas with errors in them or below. */
  readonly faulty?: Set<string>
}

/** The context from enclosing schemas. */
interface Surroundings {
  readonly isRoot?: boolean
  /** Inside the metadata of an object. */
  readonly inMeta?: boolean
  /** The reason why a default is forbidden. */
  readonly noDefaults?: string
}

export const openApiTypes: readonly string[] = ['string', 'number', 'integer', 'boolean', 'array', 'object']
const metaFields = ['metadata', 'kind', 'apiVersion']

export function* validateSchema(
  path: FieldPath,
  schema: Schema,
  options: SchemaOptions,
  around: Surroundings = {},
): Steps<FieldError[]> {
  if (isPlainScalar(schema)) return []
  if (shouldYield()) yield
  const errors = collectErrors(
    validateSupported(path, schema, options, around),
    schema.uniqueItems === true &&
      path
        .child('uniqueItems')
        .forbidden('uniqueItems cannot be set to true since the runtime complexity becomes quadratic'),
    yield* validateProperties(path, schema, options, around),
    yield* validateCombined(path, schema, options, around),
    yield* validateItems(path, schema, options, around),
    schema[PRESERVE] === false && path.child(PRESERVE).invalid(false, 'must be true or undefined'),
    validateMapType(path, schema),
    validateListType(path, schema, options),
    validateRules(path, schema),
  )
  if (errors.length > 0) options.faulty?.add(path.toString())
  return errors
}

/** Unsupported JSON Schema fields in the order of upstream's checks. */
const refused = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'] as const

/** Fields that are rejected even if empty. */
const refusedEmpty: readonly string[] = ['additionalItems', 'dependencies', '$ref']

function validateSupported(
  path: FieldPath,
  schema: Schema,
  options: SchemaOptions,
  around: Surroundings,
): FieldError[] {
  const { type = '' } = schema
  const at = (name: string): FieldPath => path.child(name)
  const hasDefault = schema.default !== undefined && schema.default !== null
  return collectErrors(
    options.knownTypes && type !== '' && !openApiTypes.includes(type) && at('type').notInSet(type, openApiTypes),
    hasDefault && around.noDefaults !== undefined && at('default').forbidden(`must not be set ${around.noDefaults}`),
    refused
      .filter((name) => isPresent(schema[name]) || (refusedEmpty.includes(name) && schema[name] !== undefined))
      .map((name) => at(name).forbidden(`${name} is not supported`)),
    type === 'null' && at('type').forbidden('type cannot be set to null, use nullable as an alternative'),
    Array.isArray(schema.items) &&
      schema.items.length > 0 &&
      at('items').forbidden('items must be a schema object and not an array'),
    around.inMeta === true &&
      schema[EMBEDDED] === true &&
      at(EMBEDDED).forbidden('must not be used inside of resource meta'),
  )
}

function isPresent(value: unknown): boolean {
  if (value === undefined || value === '') return false
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0
}

function* validateProperties(
  path: FieldPath,
  schema: Schema,
  options: SchemaOptions,
  around: Surroundings,
): Steps<FieldError[]> {
  const { properties = {}, additionalProperties } = schema
  const additional = additionalOf(schema)
  const field = path.child('additionalProperties')
  const inside: Surroundings = {
    ...insideOf(around),
    ...(around.inMeta === true ? { noDefaults: 'inside additionalProperties applying to object metadata' } : {}),
  }
  const clash = additionalProperties === false || additional !== undefined
  return collectErrors(
    clash &&
      Object.keys(properties).length > 0 &&
      field.forbidden('additionalProperties and properties are mutual exclusive'),
    additional !== undefined && (yield* validateSchema(field, additional, options, inside)),
    yield* flatMapSteps(relevantProperties(properties), ([name, property]) => {
      const isMeta = (around.isRoot === true || schema[EMBEDDED] === true) && metaFields.includes(name)
      return validateSchema(path.child('properties').key(name), property, options, {
        ...insideOf(around),
        ...(isMeta ? { inMeta: true } : {}),
        ...(isMeta && around.isRoot === true ? { noDefaults: `in top-level ${name}` } : {}),
      })
    }),
  )
}

function insideOf(around: Surroundings): Surroundings {
  return { ...around, isRoot: false }
}

function* validateCombined(
  path: FieldPath,
  schema: Schema,
  options: SchemaOptions,
  around: Surroundings,
): Steps<FieldError[]> {
  const inside = insideOf(around)
  const check = (path: FieldPath, one: Schema): Steps<FieldError[]> => validateSchema(path, one, options, inside)
  const dependencies = Object.entries(schema.dependencies ?? {})
  const schemasOnly = dependencies.filter((member): member is [string, Schema] => !Array.isArray(member[1]))
  return collectErrors(
    schema.not !== undefined && (yield* check(path.child('not'), schema.not)),
    yield* flatMapSteps(['allOf', 'oneOf', 'anyOf'] as const, (name) =>
      flatMapSteps(schema[name] ?? [], (one, at) => check(path.child(name).index(at), one)),
    ),
    yield* flatMapSteps(Object.entries(schema.definitions ?? {}), ([name, one]) =>
      check(path.child('definitions').key(name), one),
    ),
    yield* flatMapSteps(schemasOnly, ([name, one]) => check(path.child('dependencies').key(name), one)),
  )
}

function* validateItems(
  path: FieldPath,
  { items }: Schema,
  options: SchemaOptions,
  around: Surroundings,
): Steps<FieldError[]> {
  if (items === undefined) return []
  const field = path.child('items')
  const inside = insideOf(around)
  if (!Array.isArray(items)) return yield* validateSchema(field, items, options, inside)
  return yield* flatMapSteps(items, (one, at) => validateSchema(field.index(at), one, options, inside))
}

function wrongType(path: FieldPath, type: string, detail: string): FieldError {
  const field = path.child('type')
  return type === '' ? field.required(detail) : field.invalid(type, detail)
}

function validateMapType(path: FieldPath, schema: Schema): FieldError[] {
  const { type = '' } = schema
  const mapType = schema[MAP_TYPE]
  if (mapType === undefined) return []
  return collectErrors(
    type !== 'object' && wrongType(path, type, `must be object if ${MAP_TYPE} is specified`),
    mapType !== 'atomic' &&
      mapType !== 'granular' &&
      path.child(MAP_TYPE).notSupported(mapType, ['atomic', 'granular']),
  )
}

function validateListType(path: FieldPath, schema: Schema, options: SchemaOptions): FieldError[] {
  const { type = '' } = schema
  const listType = schema[LIST_TYPE]
  const keys = schema[MAP_KEYS] ?? []
  const field = path.child(LIST_TYPE)
  const keyless = `must be map if ${MAP_KEYS} is non-empty`
  if (listType === undefined) return keys.length > 0 ? [field.required(keyless)] : []
  const isArray = type === 'array'
  return collectErrors(
    !isArray && wrongType(path, type, `must be array if ${LIST_TYPE} is specified`),
    isArray && options.atomicSets && hasLooseItems(schema) && looseItems(path, schema),
    !['atomic', 'set', 'map'].includes(listType) && field.notSupported(listType, ['atomic', 'set', 'map']),
    keys.length > 0 && listType !== 'map' && field.invalid(listType, keyless),
    listType === 'map' && validateMapList(path, schema, keys),
    options.soundMapKeys && validateMapKeys(path, schema),
  )
}

/** A set whose items can be changed partially. */
export function hasLooseItems(schema: Schema): boolean {
  const items = itemsOf(schema)
  if (schema[LIST_TYPE] !== 'set' || items === undefined) return false
  if (items.type === 'array') return (items[LIST_TYPE] ?? 'atomic') !== 'atomic'
  return items.type === 'object' && items[MAP_TYPE] !== 'atomic'
}

function looseItems(path: FieldPath, schema: Schema): FieldError {
  const items = itemsOf(schema)
  const name = items?.type === 'array' ? LIST_TYPE : MAP_TYPE
  const detail = `must be atomic as item of a list with ${LIST_TYPE}=set`
  // Upstream prints the list type in either case.
  return path
    .child('items')
    .child(name)
    .invalid(items?.[LIST_TYPE] ?? null, detail)
}

function validateMapList(path: FieldPath, schema: Schema, keys: readonly string[]): FieldError[] {
  const items = itemsOf(schema)
  const at = path.child('items')
  return collectErrors(
    keys.length === 0 && path.child(MAP_KEYS).required(`must not be empty if ${LIST_TYPE} is map`),
    schema.items === undefined && at.required(`must have a schema if ${LIST_TYPE} is map`),
    Array.isArray(schema.items) &&
      at.invalid(internalItems(schema.items), `must only have a single schema if ${LIST_TYPE} is map`),
    items !== undefined &&
      items.type !== 'object' &&
      at.child('type').invalid(items.type ?? '', `must be object if parent array's ${LIST_TYPE} is map`),
    items?.type === 'object' && validateKeyNames(path, items, keys),
  )
}

function validateKeyNames(path: FieldPath, items: Schema, keys: readonly string[]): FieldError[] {
  const field = path.child(MAP_KEYS)
  const isRepeated = createRepetition()
  return keys.flatMap((name) => {
    const property = propertyOf(items, name)
    const nested = property?.type === 'array' || property?.type === 'object'
    const typeField = path.child('items.properties').key(name).child('type')
    return collectErrors(
      property === undefined && field.invalid(keys, 'entries must all be names of item properties'),
      nested && typeField.invalid(items.type, `must be a scalar type if parent array's ${LIST_TYPE} is map`),
      isRepeated(name) && field.invalid(keys, 'must not contain duplicate entries'),
    )
  })
}

function propertyOf({ properties = {} }: Schema, name: string): Schema | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined
}

/** Keys must be present to identify items. */
export function validateMapKeys(path: FieldPath, schema: Schema): FieldError[] {
  const listType = schema[LIST_TYPE] ?? ''
  const items = itemsOf(schema)
  if (items === undefined || (listType !== 'set' && listType !== 'map')) return []
  const errors =
    items.nullable === true
      ? [path.child('items.nullable').forbidden(`cannot be nullable when ${LIST_TYPE} is ${listType}`)]
      : []
  if (listType === 'set') return errors
  const why = `this property is in ${MAP_KEYS}, so it`
  return (schema[MAP_KEYS] ?? []).reduce((all, name) => {
    const property = propertyOf(items, name)
    if (property === undefined) return all
    const at = path.child('items.properties').key(name)
    const isThere = (items.required ?? []).includes(name) || (property.default ?? null) !== null
    return [
      ...all,
      ...(isThere ? [] : [at.child('default').required(`${why} must have a default or be a required property`)]),
      ...(property.nullable === true ? [at.child('nullable').forbidden(`${why} cannot be nullable`)] : []),
    ]
  }, errors)
}

/** The form of rules; they are compiled only if there are no other errors. */
function validateRules(path: FieldPath, schema: Schema): FieldError[] {
  return path.child(RULES).each(schema[RULES], (path, rule) => validateRule(path, rule, schema))
}

const reasons = ['FieldValueRequired', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueDuplicate']

function validateRule(path: FieldPath, rule: ValidationRule, schema: Schema): FieldError[] {
  const { messageExpression = '', reason, fieldPath = '' } = rule
  const at = (name: string): FieldPath => path.child(name)
  return collectErrors(
    validateMessage(path, rule),
    messageExpression !== '' &&
      isBlank(messageExpression) &&
      at('messageExpression').required('messageExpression must be non-empty if specified'),
    reason !== undefined && !reasons.includes(reason) && at('reason').notInSet(reason, reasons),
    fieldPath !== '' && isBlank(fieldPath) && at('fieldPath').invalid(fieldPath, 'must be non-empty if specified'),
    hasLineBreak(fieldPath) && at('fieldPath').invalid(fieldPath, 'must not contain line breaks'),
    fieldPath !== '' && !isFieldPath(fieldPath, schema) && at('fieldPath').invalid(fieldPath, 'must be a valid path'),
  )
}

/** At most one error for the rule and its message. */
function validateMessage(path: FieldPath, { rule, message = '' }: ValidationRule): FieldError[] {
  const field = path.child('message')
  if (isBlank(rule)) return [path.child('rule').required('rule is not specified')]
  if (message !== '' && isBlank(message)) return [field.invalid(message, 'must be non-empty if specified')]
  if (hasLineBreak(message.trim())) return [field.invalid(message, 'must not contain line breaks')]
  if (!hasLineBreak(rule.trim()) || message !== '') return []
  return [field.required('message must be specified if rule contains line breaks')]
}

function isFieldPath(text: string, schema: Schema): boolean {
  return structuralObstacle(schema) !== undefined || typeof findField(text, structuralOf(schema)) !== 'string'
}
