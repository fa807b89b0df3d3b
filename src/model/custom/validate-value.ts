/**
 * Validates a value against its schema with the texts of upstream's kube-openapi. The checks of one value run in
 * upstream's order.
 */
import { goQuote } from '#lib/go/text.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'
import { compileRegexp, RegexpError } from '#lib/regexp.ts'
import { type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'

import { Correlation } from './correlation.ts'
import { hasFormat, isCheckedFormat } from './formats.ts'
import { isInt64, numberFaults } from './number-rules.ts'
import { pathText } from './prune.ts'
import type { Structural, ValueRules } from './structural.ts'

export interface ValueContext {
  /** The path of the value; texts are relative to it. The root by default. */
  readonly path?: FieldPath
  /** The old value: errors of unchanged parts are not reported. */
  readonly old?: JsonValue | undefined
  /** Counts unknown formats as well, as upstream does for defaults. */
  readonly anyFormat?: boolean
}

/** The limit of reported errors, so that a long list of invalid values does not produce a huge answer. */
const MAX_FAULTS = 1_000

/** Upstream's name of the root. */
export const NOWHERE: FieldPath = fieldPath('<nil>')

/** `path`, or upstream's name of the root. */
export function orNowhere(path: FieldPath): FieldPath {
  return path.isRoot ? NOWHERE : path
}

export function validateValue(value: JsonValue, schema: Structural, context: ValueContext = {}): FieldError[] {
  const { old } = context
  const errors = run(value, schema, undefined, context)
  if (errors.length === 0 || old === undefined) return errors
  return run(value, schema, new Correlation(value, old, schema), context)
}

function run(
  value: JsonValue,
  schema: Structural,
  before: Correlation | undefined,
  { path = fieldPath(''), anyFormat = false }: ValueContext,
): FieldError[] {
  const check = new Check([], path, anyFormat)
  checkRatcheting(check, value, schema, before)
  return check.errors
}

/** The state of one validation. Alternatives of a condition are validated separately. */
class Check {
  readonly errors: FieldError[] = []
  /** The number of matched keywords: the errors of the best alternative are reported. */
  matches = 0
  readonly path: (string | number)[]
  readonly root: FieldPath
  readonly anyFormat: boolean
  readonly #reported = new Set<string>()

  constructor(path: (string | number)[], root: FieldPath, anyFormat: boolean) {
    this.path = path
    this.root = root
    this.anyFormat = anyFormat
  }

  fork(): Check {
    return new Check(this.path, this.root, this.anyFormat)
  }

  /** The path in texts. */
  get name(): string {
    return pathText(this.path)
  }

  get place(): FieldPath {
    const { name, root } = this
    return name === '' ? root : root.child(name)
  }

  /** The place in errors. */
  get field(): FieldPath {
    return orNowhere(this.place)
  }

  /** Reports each error once. */
  add(error: FieldError): void {
    const text = `${error.field}\0${error.detail}\0${error.type}`
    if (this.#reported.has(text) || this.errors.length >= MAX_FAULTS) return
    this.#reported.add(text)
    this.errors.push(error)
  }

  /** `text` refers to the path. */
  fault(shown: unknown, text: string): void {
    this.add(this.field.invalid(shown, `${this.name} in body ${text}`))
  }

  /** An error for which upstream has no path. */
  loose(text: string): void {
    this.add(orNowhere(this.root).invalid('', text))
  }

  wrongType(expected: string, actual: string): void {
    const text = `${this.name} in body must be of type ${expected}: ${goQuote(actual)}`
    this.add(this.field.typeInvalid(actual, text))
  }

  merge({ errors, matches }: Check): void {
    for (const error of errors) this.add(error)
    this.matches += matches
  }
}

const typeMeta = new Set<string | number>(['kind', 'apiVersion'])

/** Errors of an unchanged part do not count. */
function checkRatcheting(check: Check, value: JsonValue, schema: Structural, before: Correlation | undefined): void {
  if (before === undefined) return checkValue(check, value, schema, undefined)
  const inner = check.fork()
  checkValue(inner, value, schema, before)
  if (inner.errors.length > 0 && before.isUnchanged) inner.errors.length = 0
  check.merge(inner)
}

function checkValue(check: Check, value: JsonValue, schema: Structural, before: Correlation | undefined): void {
  const { values } = schema
  if (value === null) return checkNull(check, schema)
  checkType(check, value, schema)
  checkConditions(check, value, values, before)
  if (typeof value === 'string') checkText(check, value, schema)
  else if (typeof value === 'number' || typeof value === 'bigint') checkNumber(check, value, schema)
  else if (Array.isArray(value)) checkList(check, value, schema, before)
  if (values?.enum !== undefined) checkEnum(check, value, values.enum)
  if (isJsonObject(value)) checkObject(check, value, schema, before)
  check.matches += 2
}

function checkNull(check: Check, schema: Structural): void {
  const types = typesOf(schema)
  if (types.length > 0 && !schema.nullable) check.wrongType(types.join(','), 'null')
  else check.matches++
  if (schema.values?.enum !== undefined) checkEnum(check, null, schema.values.enum)
}

const INT_OR_STRING = ['integer', 'string']

function typesOf({ type, intOrString }: Structural): readonly string[] {
  if (intOrString) return INT_OR_STRING
  return type === '' ? [] : [type]
}

/** The JSON type of a value, and the format of its Go type. */
function kindOf(value: JsonValue): readonly [type: string, format: string] {
  if (typeof value === 'string') return ['string', '']
  if (typeof value === 'boolean') return ['boolean', '']
  if (Array.isArray(value)) return ['array', '']
  if (typeof value === 'number' || typeof value === 'bigint') {
    return isInt64(value) ? ['integer', 'int64'] : ['number', 'float64']
  }
  return ['object', '']
}

function checkType(check: Check, value: JsonValue, schema: Structural): void {
  const [actual, goFormat] = kindOf(value)
  // A quick check for the common case.
  if (schema.type === actual && !schema.intOrString) {
    check.matches += 2
    return
  }
  const types = typesOf(schema)
  const format = usedFormat(check, schema)
  if (types.length === 0 && format === '') return
  check.matches++
  const expected = misfit(types, format, [actual, goFormat])
  if (expected === undefined) check.matches++
  else check.wrongType(...expected)
}

/** The expected and actual type; undefined if the value has one of the types. */
function misfit(
  types: readonly string[],
  format: string,
  [actual, goFormat]: readonly [string, string],
): readonly [expected: string, actual: string] | undefined {
  if (types.includes(actual) || (actual === 'integer' && types.includes('number'))) return undefined
  const isText = actual === 'string' || actual === 'array'
  if (!isText && format !== '' && goFormat !== format) return [format, goFormat]
  // Texts and lists are validated by the format.
  if (isText && format !== '' && !types.includes('number') && !types.includes('integer')) return undefined
  return [types.join(','), actual]
}

/** An unknown format counts as none. */
function usedFormat({ anyFormat }: Check, { type, intOrString, values }: Structural): string {
  const format = values?.format ?? ''
  return format !== '' && (anyFormat || isCheckedFormat(format, intOrString ? '' : type)) ? format : ''
}

function checkConditions(
  check: Check,
  value: JsonValue,
  rules: ValueRules | undefined,
  before: Correlation | undefined,
): void {
  check.matches += 2
  if (rules === undefined) return
  const validate = (schema: Structural): Check => {
    const inner = check.fork()
    checkValue(inner, value, schema, before)
    return inner
  }
  if (rules.anyOf !== undefined) checkAnyOf(check, rules.anyOf, validate)
  if (rules.oneOf !== undefined) checkOneOf(check, rules.oneOf, validate)
  if (rules.allOf !== undefined) checkAllOf(check, rules.allOf, validate)
  if (rules.not !== undefined && validate(rules.not).errors.length === 0) {
    check.loose(`${goQuote(check.name)} must not validate the schema (not)`)
  }
}

type Validate = (schema: Structural) => Check

/** The best attempt. */
function better(best: Check | undefined, next: Check): Check {
  return best === undefined || next.matches > best.matches ? next : best
}

function checkAnyOf(check: Check, schemas: readonly Structural[], validate: Validate): void {
  let best: Check | undefined
  for (const schema of schemas) {
    const attempt = validate(schema)
    if (attempt.errors.length === 0) return check.merge(attempt)
    best = better(best, attempt)
  }
  check.loose(`${goQuote(check.name)} must validate at least one schema (anyOf)`)
  if (best !== undefined) check.merge(best)
}

function checkOneOf(check: Check, schemas: readonly Structural[], validate: Validate): void {
  const attempts = schemas.map(validate)
  const valid = attempts.filter(({ errors }) => errors.length === 0)
  if (valid.length === 1) return check.merge(valid[0] as Check)
  const found = valid.length === 0 ? 'Found none valid' : `Found ${valid.length} valid alternatives`
  check.loose(`${goQuote(check.name)} must validate one and only one schema (oneOf). ${found}`)
  const best = valid.length === 0 ? attempts.reduce<Check | undefined>(better, undefined) : undefined
  if (best !== undefined) check.merge(best)
}

function checkAllOf(check: Check, schemas: readonly Structural[], validate: Validate): void {
  const attempts = schemas.map(validate)
  for (const attempt of attempts) check.merge(attempt)
  const failed = attempts.filter(({ errors }) => errors.length > 0).length
  if (failed === 0) return
  const none = failed === attempts.length ? '. None validated' : ''
  check.loose(`${goQuote(check.name)} must validate all the schemas (allOf)${none}`)
}

function checkText(check: Check, value: string, schema: Structural): void {
  check.matches++
  if (schema.values === undefined) return
  checkLengthAndPattern(check, value, schema.values)
  const format = usedFormat(check, schema)
  if (format === '' || !isCheckedFormat(format, '')) return
  check.matches++
  if (!hasFormat(format, value)) {
    check.add(check.field.typeInvalid(value, `${check.name} in body must be of type ${format}: ${goQuote(value)}`))
  }
}

/** At most one of them is reported. */
function checkLengthAndPattern(check: Check, value: string, rules: ValueRules): void {
  const { maxLength, minLength, pattern } = rules
  const length = maxLength === undefined && minLength === undefined ? 0 : codePoints(value)
  if (maxLength !== undefined && length > maxLength) return check.add(check.field.tooLong(maxLength))
  if (minLength !== undefined && length < minLength) {
    return check.fault(value, `should be at least ${minLength} chars long`)
  }
  if (pattern === undefined) return
  try {
    if (!compileRegexp(pattern).test(value)) check.fault(value, `should match '${pattern}'`)
  } catch (error) {
    if (!(error instanceof RegexpError)) throw error
    check.fault(value, `should match '${pattern}, but pattern is invalid: ${error.message}'`)
  }
}

function codePoints(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count--
  }
  return count
}

function checkNumber(check: Check, value: number | bigint, schema: Structural): void {
  check.matches += 2
  const type = schema.intOrString ? '' : schema.type
  // Almost all numbers are integers of an unbounded int64.
  if (schema.values === undefined && (type !== 'integer' || isInt64(value))) return
  for (const fault of numberFaults(value, schema.values, { type, name: check.name })) {
    if ('loose' in fault) check.loose(fault.loose)
    else if (fault.text.startsWith('factor')) check.add(check.field.invalid(fault.shown, fault.text))
    else check.fault(fault.shown, fault.text)
  }
}

function checkList(
  check: Check,
  list: readonly JsonValue[],
  { items, values }: Structural,
  before: Correlation | undefined,
): void {
  check.matches += 2
  if (items !== undefined) {
    const { path } = check
    for (let index = 0; index < list.length; index++) {
      path.push(index)
      checkRatcheting(check, list[index] as JsonValue, items, before?.index(index))
      path.pop()
    }
  }
  const { minItems, maxItems } = values ?? {}
  if (minItems !== undefined && list.length < minItems) {
    check.fault(list.length, `should have at least ${minItems} items`)
  }
  if (maxItems !== undefined && list.length > maxItems) check.add(check.field.tooMany(list.length, maxItems))
}

/** A prepared enumeration, for comparing many list items. */
interface Enumeration {
  readonly values: ReadonlySet<JsonValue>
  /** Maps and lists as JSON. */
  readonly texts: ReadonlySet<string>
  readonly refusal: FieldError
}

const enumerations = new WeakMap<readonly JsonValue[], Enumeration>()

function enumerationOf(allowed: readonly JsonValue[]): Enumeration {
  const known = enumerations.get(allowed)
  if (known !== undefined) return known
  const shown = allowed.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))
  const made: Enumeration = {
    values: new Set(allowed),
    texts: new Set(allowed.filter((one) => typeof one === 'object').map((one) => JSON.stringify(one))),
    refusal: fieldPath('').notSupported(null, shown),
  }
  enumerations.set(allowed, made)
  return made
}

function checkEnum(check: Check, value: JsonValue, allowed: readonly JsonValue[]): void {
  const { values, texts, refusal } = enumerationOf(allowed)
  const isText = texts.size > 0 && typeof value === 'object' && texts.has(JSON.stringify(value))
  if (value !== null && (values.has(value) || isSameNumber(value, values) || isText)) return
  check.add({ ...refusal, field: check.field.toString(), badValue: value })
}

/** Go converts numbers to the type of the allowed value, which truncates fractions. */
function isSameNumber(value: JsonValue, allowed: ReadonlySet<JsonValue>): boolean {
  return typeof value === 'number' && allowed.has(Math.trunc(value))
}

function checkObject(check: Check, object: JsonObject, schema: Structural, before: Correlation | undefined): void {
  check.matches++
  const { values, properties, additional } = schema
  const names = Object.keys(object)
  if (values !== undefined) checkSize(check, names.length, values)
  const { path } = check
  for (const name of names) {
    const property = properties.get(name)
    if (property === undefined && additional === false) {
      check.add(check.field.invalid(name, `${check.name}.${name} in body is a forbidden property`))
    }
    const member = property ?? (typeof additional === 'object' ? additional : undefined)
    if (member === undefined) continue
    const isTypeMeta = path.length === 0 && typeMeta.has(name)
    path.push(name)
    checkRatcheting(check, object[name] as JsonValue, member, isTypeMeta ? undefined : before?.key(name))
    path.pop()
  }
  for (const name of values?.required ?? []) {
    if (!Object.hasOwn(object, name)) check.add(check.place.child(name).required())
  }
}

function checkSize(check: Check, size: number, { minProperties, maxProperties }: ValueRules): void {
  if (minProperties !== undefined && size < minProperties) {
    check.fault(size, `should have at least ${minProperties} properties`)
  }
  if (maxProperties !== undefined && size > maxProperties) check.add(check.field.tooMany(size, maxProperties))
}
