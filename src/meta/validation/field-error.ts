/** Formats field errors as upstream's field.Error, for the message of a Status. */
import { goJson, goNumber, goQuote } from '#lib/go/text.ts'

import { type FieldError, type FieldErrorType, omitted, type Verbatim, verbatimText } from './field-path.ts'

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

/** The text without the path: `Invalid value: 0: must be greater than 0`. */
export function fieldErrorBody(error: FieldError): string {
  return errorBody(error, new Map())
}

/** The texts of values that were written before: several errors may show the same large list. */
type WrittenValues = Map<object, string>

function errorBody({ type, badValue, detail }: FieldError, written: WrittenValues): string {
  const hidden = withoutValue.has(type) || badValue === omitted
  const head = hidden ? titles[type] : `${titles[type]}: ${valueText(badValue, written)}`
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

/**
 * The maximum total length of a status in characters. Every error may print the same large value, and upstream prints
 * all of them.
 */
const MAX_STATUS_TEXT = 256 * 1024

/** By the errors: a status shows them twice, in its message and in its causes. */
const shownFor = new WeakMap<readonly FieldError[], readonly ShownError[]>()

/** The errors that fit into a status, from the first on; usually all. */
export function shownErrors(errors: readonly FieldError[]): readonly ShownError[] {
  const before = shownFor.get(errors)
  if (before !== undefined) return before
  const shown = chooseShown(errors)
  shownFor.set(errors, shown)
  return shown
}

function chooseShown(errors: readonly FieldError[]): ShownError[] {
  const shown: ShownError[] = []
  const written: WrittenValues = new Map()
  let room = MAX_STATUS_TEXT
  for (const error of errors) {
    const body = errorBody(error, written)
    room -= error.field.length + body.length
    if (room < 0 && shown.length > 0) break
    shown.push({ error, body })
  }
  return shown
}

/** One text for all: a single one unchanged, several as `[a, b]`, duplicates once. Empty without errors. */
export function aggregateText(errors: readonly FieldError[]): string {
  const shown = shownErrors(errors)
  const texts = [...new Set(shown.map(({ error, body }) => `${error.field}: ${body}`))]
  const omitted = errors.length - shown.length
  if (omitted > 0) texts.push(`and ${omitted} more errors`)
  return texts.length > 1 ? `[${texts.join(', ')}]` : (texts[0] ?? '')
}

/** Longer values, in characters, are cut. */
const MAX_VALUE_TEXT = 64 * 1024

function valueText(value: unknown, written: WrittenValues): string {
  if (typeof value === 'string') return cut(value, goQuote)
  if (typeof value === 'number' || typeof value === 'bigint') return goNumber(value)
  if (typeof value !== 'object' || value === null) return cut(goJson(value))
  const text = written.get(value) ?? objectText(value)
  written.set(value, text)
  return text
}

function objectText(value: object): string {
  return cut(verbatimText in value ? (value as Verbatim)[verbatimText] : goJson(value))
}

function cut(text: string, write: (shown: string) => string = String): string {
  if (text.length <= MAX_VALUE_TEXT) return write(text)
  return `${write(text.slice(0, MAX_VALUE_TEXT))}... (${text.length - MAX_VALUE_TEXT} more characters)`
}
