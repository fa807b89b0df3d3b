/** The rules of one OpenAPI schema in a definition, and of all schemas inside it. */
import type { ValidationRule } from '#apis/apiextensions/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { flatMapSteps, isDue, type Steps } from '#lib/slices.ts'
import {
  child,
  type FieldError,
  forbidden,
  index,
  invalid,
  key,
  notInSet,
  notSupported,
  required,
} from '#meta/validation/field-error.ts'
import { findField } from '#model/custom/field-path.ts'
import { additionalOf, isPlainScalar, itemsOf, type Schema, telling } from '#model/custom/schema-walk.ts'
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

/** What is asked of all schemas; an update may keep what the old object had already. */
export interface SchemaOptions {
  readonly knownTypes: boolean
  readonly atomicSets: boolean
  readonly soundMapKeys: boolean
  /** Gets the paths of schemas in which something is wrong, or in those inside them. */
  readonly faulty?: Set<string>
}

/** What a schema must know of those around it. */
interface Surroundings {
  readonly isRoot?: boolean
  /** Inside the metadata of an object. */
  readonly inMeta?: boolean
  /** Why there may be no default. */
  readonly noDefaults?: string
}

export const openApiTypes: readonly string[] = ['string', 'number', 'integer', 'boolean', 'array', 'object']
const metaFields = ['metadata', 'kind', 'apiVersion']

export function* validateSchema(
  path: string,
  schema: Schema,
  options: SchemaOptions,
  around: Surroundings = {},
): Steps<FieldError[]> {
  if (isPlainScalar(schema)) return []
  if (isDue()) yield
  const errors = [
    ...validateSupported(path, schema, options, around),
    ...(schema.uniqueItems === true
      ? [
          forbidden(
            child(path, 'uniqueItems'),
            'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
          ),
        ]
      : []),
    ...(yield* validateProperties(path, schema, options, around)),
    ...(yield* validateCombined(path, schema, options, around)),
    ...(yield* validateItems(path, schema, options, around)),
    ...(schema[PRESERVE] === false ? [invalid(child(path, PRESERVE), false, 'must be true or undefined')] : []),
    ...validateMapType(path, schema),
    ...validateListType(path, schema, options),
    ...validateRules(path, schema),
  ]
  if (errors.length > 0) options.faulty?.add(path)
  return errors
}

/** Fields of JSON schema that are not served, in the order in which upstream looks for them. */
const refused = ['id', 'additionalItems', 'patternProperties', 'definitions', 'dependencies', '$ref'] as const

/** Those that are refused even when they say nothing. */
const refusedEmpty: readonly string[] = ['additionalItems', 'dependencies', '$ref']

function validateSupported(path: string, schema: Schema, options: SchemaOptions, around: Surroundings): FieldError[] {
  const { type = '' } = schema
  const at = (name: string): string => child(path, name)
  const hasDefault = schema.default !== undefined && schema.default !== null
  return [
    ...(options.knownTypes && type !== '' && !openApiTypes.includes(type)
      ? [notInSet(at('type'), type, openApiTypes)]
      : []),
    ...(hasDefault && around.noDefaults !== undefined
      ? [forbidden(at('default'), `must not be set ${around.noDefaults}`)]
      : []),
    ...refused
      .filter((name) => isPresent(schema[name]) || (refusedEmpty.includes(name) && schema[name] !== undefined))
      .map((name) => forbidden(at(name), `${name} is not supported`)),
    ...(type === 'null' ? [forbidden(at('type'), 'type cannot be set to null, use nullable as an alternative')] : []),
    ...(Array.isArray(schema.items) && schema.items.length > 0
      ? [forbidden(at('items'), 'items must be a schema object and not an array')]
      : []),
    ...(around.inMeta === true && schema[EMBEDDED] === true
      ? [forbidden(at(EMBEDDED), 'must not be used inside of resource meta')]
      : []),
  ]
}

function isPresent(value: unknown): boolean {
  if (value === undefined || value === '') return false
  return typeof value !== 'object' || value === null || Object.keys(value).length > 0
}

function* validateProperties(
  path: string,
  schema: Schema,
  options: SchemaOptions,
  around: Surroundings,
): Steps<FieldError[]> {
  const { properties = {}, additionalProperties } = schema
  const additional = additionalOf(schema)
  const field = child(path, 'additionalProperties')
  const inside: Surroundings = {
    ...insideOf(around),
    ...(around.inMeta === true ? { noDefaults: 'inside additionalProperties applying to object metadata' } : {}),
  }
  const clash = additionalProperties === false || additional !== undefined
  return [
    ...(clash && Object.keys(properties).length > 0
      ? [forbidden(field, 'additionalProperties and properties are mutual exclusive')]
      : []),
    ...(additional === undefined ? [] : yield* validateSchema(field, additional, options, inside)),
    ...(yield* flatMapSteps(telling(properties), ([name, property]) => {
      const isMeta = (around.isRoot === true || schema[EMBEDDED] === true) && metaFields.includes(name)
      return validateSchema(key(child(path, 'properties'), name), property, options, {
        ...insideOf(around),
        ...(isMeta ? { inMeta: true } : {}),
        ...(isMeta && around.isRoot === true ? { noDefaults: `in top-level ${name}` } : {}),
      })
    })),
  ]
}

function insideOf(around: Surroundings): Surroundings {
  return { ...around, isRoot: false }
}

function* validateCombined(
  path: string,
  schema: Schema,
  options: SchemaOptions,
  around: Surroundings,
): Steps<FieldError[]> {
  const inside = insideOf(around)
  const check = (field: string, one: Schema): Steps<FieldError[]> => validateSchema(field, one, options, inside)
  const dependencies = Object.entries(schema.dependencies ?? {})
  const schemasOnly = dependencies.filter((member): member is [string, Schema] => !Array.isArray(member[1]))
  return [
    ...(schema.not === undefined ? [] : yield* check(child(path, 'not'), schema.not)),
    ...(yield* flatMapSteps(['allOf', 'oneOf', 'anyOf'] as const, (name) =>
      flatMapSteps(schema[name] ?? [], (one, at) => check(index(child(path, name), at), one)),
    )),
    ...(yield* flatMapSteps(Object.entries(schema.definitions ?? {}), ([name, one]) =>
      check(key(child(path, 'definitions'), name), one),
    )),
    ...(yield* flatMapSteps(schemasOnly, ([name, one]) => check(key(child(path, 'dependencies'), name), one))),
  ]
}

function* validateItems(
  path: string,
  { items }: Schema,
  options: SchemaOptions,
  around: Surroundings,
): Steps<FieldError[]> {
  if (items === undefined) return []
  const field = child(path, 'items')
  const inside = insideOf(around)
  if (!Array.isArray(items)) return yield* validateSchema(field, items, options, inside)
  return yield* flatMapSteps(items, (one, at) => validateSchema(index(field, at), one, options, inside))
}

function wrongType(path: string, type: string, detail: string): FieldError {
  const field = child(path, 'type')
  return type === '' ? required(field, detail) : invalid(field, type, detail)
}

function validateMapType(path: string, schema: Schema): FieldError[] {
  const { type = '' } = schema
  const mapType = schema[MAP_TYPE]
  if (mapType === undefined) return []
  return [
    ...(type === 'object' ? [] : [wrongType(path, type, `must be object if ${MAP_TYPE} is specified`)]),
    ...(mapType === 'atomic' || mapType === 'granular'
      ? []
      : [notSupported(child(path, MAP_TYPE), mapType, ['atomic', 'granular'])]),
  ]
}

function validateListType(path: string, schema: Schema, options: SchemaOptions): FieldError[] {
  const { type = '' } = schema
  const listType = schema[LIST_TYPE]
  const keys = schema[MAP_KEYS] ?? []
  const field = child(path, LIST_TYPE)
  const keyless = `must be map if ${MAP_KEYS} is non-empty`
  if (listType === undefined) return keys.length > 0 ? [required(field, keyless)] : []
  const isArray = type === 'array'
  return [
    ...(isArray ? [] : [wrongType(path, type, `must be array if ${LIST_TYPE} is specified`)]),
    ...(isArray && options.atomicSets && hasLooseItems(schema) ? [looseItems(path, schema)] : []),
    ...(['atomic', 'set', 'map'].includes(listType) ? [] : [notSupported(field, listType, ['atomic', 'set', 'map'])]),
    ...(keys.length > 0 && listType !== 'map' ? [invalid(field, listType, keyless)] : []),
    ...(listType === 'map' ? validateMapList(path, schema, keys) : []),
    ...(options.soundMapKeys ? validateMapKeys(path, schema) : []),
  ]
}

/** A set whose items can be changed in part. */
export function hasLooseItems(schema: Schema): boolean {
  const items = itemsOf(schema)
  if (schema[LIST_TYPE] !== 'set' || items === undefined) return false
  if (items.type === 'array') return (items[LIST_TYPE] ?? 'atomic') !== 'atomic'
  return items.type === 'object' && items[MAP_TYPE] !== 'atomic'
}

function looseItems(path: string, schema: Schema): FieldError {
  const items = itemsOf(schema)
  const name = items?.type === 'array' ? LIST_TYPE : MAP_TYPE
  const detail = `must be atomic as item of a list with ${LIST_TYPE}=set`
  // Upstream shows the list type whichever is wrong.
  return invalid(child(path, 'items', name), items?.[LIST_TYPE] ?? null, detail)
}

function validateMapList(path: string, schema: Schema, keys: readonly string[]): FieldError[] {
  const items = itemsOf(schema)
  const at = child(path, 'items')
  return [
    ...(keys.length === 0 ? [required(child(path, MAP_KEYS), `must not be empty if ${LIST_TYPE} is map`)] : []),
    ...(schema.items === undefined ? [required(at, `must have a schema if ${LIST_TYPE} is map`)] : []),
    ...(Array.isArray(schema.items)
      ? [invalid(at, internalItems(schema.items), `must only have a single schema if ${LIST_TYPE} is map`)]
      : []),
    ...(items !== undefined && items.type !== 'object'
      ? [invalid(child(at, 'type'), items.type ?? '', `must be object if parent array's ${LIST_TYPE} is map`)]
      : []),
    ...(items?.type === 'object' ? validateKeyNames(path, items, keys) : []),
  ]
}

function validateKeyNames(path: string, items: Schema, keys: readonly string[]): FieldError[] {
  const field = child(path, MAP_KEYS)
  const isRepeated = createRepetition()
  return keys.flatMap((name) => {
    const property = propertyOf(items, name)
    const nested = property?.type === 'array' || property?.type === 'object'
    const typeField = `${key(child(path, 'items', 'properties'), name)}.type`
    return [
      ...(property === undefined ? [invalid(field, keys, 'entries must all be names of item properties')] : []),
      ...(nested
        ? [invalid(typeField, items.type, `must be a scalar type if parent array's ${LIST_TYPE} is map`)]
        : []),
      ...(isRepeated(name) ? [invalid(field, keys, 'must not contain duplicate entries')] : []),
    ]
  })
}

function propertyOf({ properties = {} }: Schema, name: string): Schema | undefined {
  return Object.hasOwn(properties, name) ? properties[name] : undefined
}

/** Keys must be there, or items could not be told apart. */
export function validateMapKeys(path: string, schema: Schema): FieldError[] {
  const listType = schema[LIST_TYPE] ?? ''
  const items = itemsOf(schema)
  if (items === undefined || (listType !== 'set' && listType !== 'map')) return []
  const errors =
    items.nullable === true
      ? [forbidden(child(path, 'items', 'nullable'), `cannot be nullable when ${LIST_TYPE} is ${listType}`)]
      : []
  if (listType === 'set') return errors
  const why = `this property is in ${MAP_KEYS}, so it`
  return (schema[MAP_KEYS] ?? []).reduce((all, name) => {
    const property = propertyOf(items, name)
    if (property === undefined) return all
    const at = key(child(path, 'items', 'properties'), name)
    const isThere = (items.required ?? []).includes(name) || (property.default ?? null) !== null
    return [
      ...all,
      ...(isThere ? [] : [required(`${at}.default`, `${why} must have a default or be a required property`)]),
      ...(property.nullable === true ? [forbidden(`${at}.nullable`, `${why} cannot be nullable`)] : []),
    ]
  }, errors)
}

/** What they are made of; whether they compile is looked at when nothing else is wrong. */
function validateRules(path: string, schema: Schema): FieldError[] {
  return (schema[RULES] ?? []).flatMap((rule, at) => validateRule(index(child(path, RULES), at), rule, schema))
}

const reasons = ['FieldValueRequired', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueDuplicate']

function validateRule(path: string, rule: ValidationRule, schema: Schema): FieldError[] {
  const { messageExpression = '', reason, fieldPath = '' } = rule
  const at = (name: string): string => child(path, name)
  return [
    ...validateMessage(path, rule),
    ...(messageExpression !== '' && isBlank(messageExpression)
      ? [required(at('messageExpression'), 'messageExpression must be non-empty if specified')]
      : []),
    ...(reason === undefined || reasons.includes(reason) ? [] : [notInSet(at('reason'), reason, reasons)]),
    ...(fieldPath !== '' && isBlank(fieldPath)
      ? [invalid(at('fieldPath'), fieldPath, 'must be non-empty if specified')]
      : []),
    ...(hasLineBreak(fieldPath) ? [invalid(at('fieldPath'), fieldPath, 'must not contain line breaks')] : []),
    ...(fieldPath !== '' && !isFieldPath(fieldPath, schema)
      ? [invalid(at('fieldPath'), fieldPath, 'must be a valid path')]
      : []),
  ]
}

/** At most one complaint about the rule and its message. */
function validateMessage(path: string, { rule, message = '' }: ValidationRule): FieldError[] {
  const field = child(path, 'message')
  if (isBlank(rule)) return [required(child(path, 'rule'), 'rule is not specified')]
  if (message !== '' && isBlank(message)) return [invalid(field, message, 'must be non-empty if specified')]
  if (hasLineBreak(message.trim())) return [invalid(field, message, 'must not contain line breaks')]
  if (!hasLineBreak(rule.trim()) || message !== '') return []
  return [required(field, 'message must be specified if rule contains line breaks')]
}

function isFieldPath(text: string, schema: Schema): boolean {
  return structuralObstacle(schema) !== undefined || typeof findField(text, structuralOf(schema)) !== 'string'
}
