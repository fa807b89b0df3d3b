/**
 * What is wrong with one field of an object, as a value: validation collects them, an Invalid status carries them.
 * The texts are those of upstream's field.Error, word for word. Paths are plain strings built with `child`, `index`
 * and `key`.
 */
import { compareText, goJson, goNumber, goQuote } from '#lib/go-text.ts'

/** Why a value is refused; travels to clients as the `reason` of a cause. */
export type FieldErrorType =
  | 'FieldValueNotFound'
  | 'FieldValueRequired'
  | 'FieldValueDuplicate'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueTooLong'
  | 'FieldValueTooShort'
  | 'FieldValueTooMany'
  | 'FieldValueTooFew'
  | 'FieldValueTypeInvalid'
  | 'InternalError'

export interface FieldError {
  readonly type: FieldErrorType
  /** Where: `spec.containers[0].name`. */
  readonly field: string
  readonly badValue: unknown
  /** May be empty. */
  readonly detail: string
  /** Which rule refused it (`minimum`, `format=ip-strict`), so that tests need not compare texts. */
  readonly origin?: string
}

const titles: Readonly<Record<FieldErrorType, string>> = {
  FieldValueNotFound: 'Not found',
  FieldValueRequired: 'Required value',
  FieldValueDuplicate: 'Duplicate value',
  FieldValueInvalid: 'Invalid value',
  FieldValueNotSupported: 'Unsupported value',
  FieldValueForbidden: 'Forbidden',
  FieldValueTooLong: 'Too long',
  FieldValueTooShort: 'Too short',
  FieldValueTooMany: 'Too many',
  FieldValueTooFew: 'Too few',
  FieldValueTypeInvalid: 'Invalid value',
  InternalError: 'Internal error',
}

const withoutValue: ReadonlySet<FieldErrorType> = new Set<FieldErrorType>([
  'FieldValueRequired',
  'FieldValueForbidden',
  'FieldValueTooLong',
  'FieldValueTooShort',
  'InternalError',
])

/** The path of a field below `path`; an empty `path` is the root. */
export function child(path: string, ...names: readonly string[]): string {
  let out = path
  for (const name of names) out = out === '' ? name : `${out}.${name}`
  return out
}

/** The path of one element of a list. */
export function index(path: string, at: number): string {
  return `${path}[${at}]`
}

/** The path of one entry of a map. */
export function key(path: string, name: string): string {
  return `${path}[${name}]`
}

const verbatimText: unique symbol = Symbol('verbatim')

/** A bad value whose text the caller knows better, for instance an object written by its own codec. */
export interface Verbatim {
  readonly [verbatimText]: string
}

/** Shows `text` as it is where the bad value would be printed. */
export function verbatim(text: string): Verbatim {
  return { [verbatimText]: text }
}

/**
 * Shows `value` as json.Marshal writes it. For strings of a named Go type (an operator, a uid), which upstream does
 * not print with `%q`; the two differ only in what they escape.
 */
export function asJson(value: unknown): Verbatim {
  return verbatim(goJson(value))
}

/** A bad value that is not shown: `Too many: must have at most 3 items`. */
export const omitted: unique symbol = Symbol('omitted')

export function invalid(field: string, badValue: unknown, detail: string, origin?: string): FieldError {
  return make('FieldValueInvalid', field, badValue, { detail, origin })
}

export function typeInvalid(field: string, badValue: unknown, detail: string): FieldError {
  return make('FieldValueTypeInvalid', field, badValue, { detail })
}

export function required(field: string, detail = ''): FieldError {
  return make('FieldValueRequired', field, '', { detail })
}

export function notFound(field: string, badValue: unknown): FieldError {
  return make('FieldValueNotFound', field, badValue, {})
}

export function duplicate(field: string, badValue: unknown): FieldError {
  return make('FieldValueDuplicate', field, badValue, {})
}

export function forbidden(field: string, detail: string): FieldError {
  return make('FieldValueForbidden', field, '', { detail })
}

/** The supported values are shown in the order given; upstream's callers mostly sort them first. */
export function notSupported(field: string, badValue: unknown, supported: readonly string[]): FieldError {
  const detail = supported.length > 0 ? `supported values: ${supported.map(goQuote).join(', ')}` : ''
  return make('FieldValueNotSupported', field, badValue, { detail })
}

/** `notSupported` with the values in the order of Go's sorted sets. */
export function notInSet(field: string, badValue: unknown, supported: Iterable<string>): FieldError {
  return notSupported(field, badValue, [...supported].sort(compareText))
}

/** Never shows the value. A negative limit is not shown either. */
export function tooLong(field: string, limit: number, unit: 'byte' | 'character' = 'byte'): FieldError {
  const detail = limit < 0 ? 'value is too long' : `may not be more than ${counted(limit, unit)}`
  return make('FieldValueTooLong', field, '<value omitted>', { detail })
}

export function tooShort(field: string, badValue: string, least: number): FieldError {
  const detail = least < 0 ? 'value is too short' : `must be at least ${counted(least, 'character')}`
  return make('FieldValueTooShort', field, badValue, { detail })
}

/** A negative `actual` or `limit` is not shown. */
export function tooMany(field: string, actual: number, limit: number): FieldError {
  const detail = limit < 0 ? 'has too many items' : `must have at most ${counted(limit, 'item')}`
  return make('FieldValueTooMany', field, actual < 0 ? omitted : actual, { detail })
}

export function tooFew(field: string, actual: number, least: number): FieldError {
  const detail = least < 0 ? 'has too few items' : `must have at least ${counted(least, 'item')}`
  return make('FieldValueTooFew', field, actual, { detail })
}

/** Not the user's fault. */
export function internal(field: string, cause: Error): FieldError {
  return make('InternalError', field, cause, { detail: cause.message })
}

/** The same errors, each naming the rule that refused it. */
export function withOrigin(origin: string, errors: readonly FieldError[]): FieldError[] {
  return errors.map((error) => ({ ...error, origin }))
}

/** The text without the path: `Invalid value: 0: must be greater than 0`. */
export function fieldErrorBody({ type, badValue, detail }: FieldError): string {
  const hidden = withoutValue.has(type) || badValue === omitted
  const head = hidden ? titles[type] : `${titles[type]}: ${valueText(badValue)}`
  return detail === '' ? head : `${head}: ${detail}`
}

export function fieldErrorText(error: FieldError): string {
  return `${error.field}: ${fieldErrorBody(error)}`
}

/** An error with its text without the path. */
interface ShownError {
  readonly error: FieldError
  readonly body: string
}

/** All texts of one status together, in characters. Every error may show the same large value: upstream shows them all. */
const MAX_STATUS_TEXT = 256 * 1024

/** The errors that a status has room for, from the first on; usually all. */
export function shownErrors(errors: readonly FieldError[]): ShownError[] {
  const shown: ShownError[] = []
  let room = MAX_STATUS_TEXT
  for (const error of errors) {
    const body = fieldErrorBody(error)
    room -= error.field.length + body.length
    if (room < 0 && shown.length > 0) break
    shown.push({ error, body })
  }
  return shown
}

/** One text for all: alone as it is, several as `[a, b]`, repeated ones once. Empty for no errors. */
export function aggregateText(errors: readonly FieldError[]): string {
  const shown = shownErrors(errors)
  const texts = [...new Set(shown.map(({ error, body }) => `${error.field}: ${body}`))]
  const omitted = errors.length - shown.length
  if (omitted > 0) texts.push(`and ${omitted} more errors`)
  return texts.length > 1 ? `[${texts.join(', ')}]` : (texts[0] ?? '')
}

/** A value that is longer than this, in characters, is cut: no reader needs all of it. */
const MAX_VALUE_TEXT = 64 * 1024

function valueText(value: unknown): string {
  if (typeof value === 'string') return cut(value, goQuote)
  if (typeof value === 'number' || typeof value === 'bigint') return goNumber(value)
  if (typeof value === 'object' && value !== null && verbatimText in value)
    return cut((value as Verbatim)[verbatimText])
  return cut(goJson(value))
}

function cut(text: string, write: (shown: string) => string = String): string {
  if (text.length <= MAX_VALUE_TEXT) return write(text)
  return `${write(text.slice(0, MAX_VALUE_TEXT))}... (${text.length - MAX_VALUE_TEXT} more characters)`
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** Errors that one object is refused for; after so many, nobody reads on. Upstream has no limit. */
const MAX_ERRORS = 10_000

/** Thrown, and never seen outside of this file, when there are too many errors. */
const OVERFLOW = new Error('Too many field errors')

let collected: FieldError[] | undefined

/**
 * The errors that `validate` returns. When it makes too many it is ended, and they are those that it has made: checking every
 * element of a list that is all wrong costs more than it tells.
 */
export function withErrorLimit(validate: () => readonly FieldError[]): readonly FieldError[] {
  const outer = collected
  const own: FieldError[] = []
  collected = own
  try {
    return validate()
  } catch (cause) {
    if (cause !== OVERFLOW) throw cause
    return own
  } finally {
    collected = outer
  }
}

function make(type: FieldErrorType, field: string, badValue: unknown, rest: Rest): FieldError {
  const error = build(type, field, badValue, rest)
  if (collected !== undefined && collected.push(error) > MAX_ERRORS) throw OVERFLOW
  return error
}

interface Rest {
  readonly detail?: string
  readonly origin?: string | undefined
}

function build(type: FieldErrorType, field: string, badValue: unknown, { detail = '', origin }: Rest): FieldError {
  return origin === undefined ? { type, field, badValue, detail } : { type, field, badValue, detail, origin }
}
