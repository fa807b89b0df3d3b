/** The path of a field, and the errors about it. A path becomes text only when a rule reports an error. */
import { compareText, goJson, goQuote } from '#lib/go/text.ts'

/** The type of an error, sent to clients as the `reason` of a cause. */
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
  /** The path: `spec.containers[0].name`. */
  readonly field: string
  readonly badValue: unknown
  /** May be empty. */
  readonly detail: string
  /** The violated rule (`minimum`, `format=ip-strict`), so that tests need not compare texts. */
  readonly origin?: string
}

export const verbatimText: unique symbol = Symbol('verbatim')

/** An invalid value with a given text, for instance an object in its own encoding. */
export interface Verbatim {
  readonly [verbatimText]: string
}

/** Prints `text` unchanged instead of the invalid value. */
export function verbatim(text: string): Verbatim {
  return { [verbatimText]: text }
}

/**
 * Prints `value` like json.Marshal. For strings of a named Go type (an operator, a uid), which upstream does not print
 * with `%q`; the two differ only in escapes.
 */
export function asJson(value: unknown): Verbatim {
  return verbatim(goJson(value))
}

/** An invalid value that is not printed: `Too many: must have at most 3 items`. */
export const omitted: unique symbol = Symbol('omitted')

/** The outcome of a check: errors, or nothing. */
export type Finding = FieldError | readonly FieldError[] | false | undefined

/** The errors among findings, in their order: `collectErrors(name === '' && path.child('name').required(), …)`. */
export function collectErrors(...findings: readonly Finding[]): FieldError[] {
  const errors: FieldError[] = []
  for (const finding of findings) addFinding(errors, finding)
  return errors
}

function addFinding(errors: FieldError[], finding: Finding): void {
  if (finding === false || finding === undefined) return
  if (!Array.isArray(finding)) errors.push(finding as FieldError)
  else for (const error of finding as readonly FieldError[]) errors.push(error)
}

/** Immutable: a step below its parent. */
export class FieldPath {
  readonly #parent: FieldPath | undefined
  readonly #step: string | number
  readonly #inBrackets: boolean
  /** Remembered, because many errors share the path of their list. */
  #text: string | undefined

  constructor(step: string | number, parent?: FieldPath, inBrackets = false) {
    this.#parent = parent
    this.#step = step
    this.#inBrackets = inBrackets
  }

  toString(): string {
    this.#text ??= this.#write()
    return this.#text
  }

  #write(): string {
    const before = this.#parent?.toString() ?? ''
    if (this.#inBrackets) return `${before}[${this.#step}]`
    return before === '' ? String(this.#step) : `${before}.${this.#step}`
  }

  /** True for the path of a whole object. */
  get isRoot(): boolean {
    return this.toString() === ''
  }

  /** The path of a field below; `name` may have dots: `template.spec`. */
  child(name: string): FieldPath {
    return new FieldPath(name, this)
  }

  /** The path of a list element. */
  index(at: number): FieldPath {
    return new FieldPath(at, this, true)
  }

  /** The path of a map entry. */
  key(name: string): FieldPath {
    return new FieldPath(name, this, true)
  }

  /** The errors of all items of a list. */
  each<T>(
    items: readonly T[] | null | undefined,
    validate: (path: FieldPath, item: T, at: number) => Finding,
  ): FieldError[] {
    const errors: FieldError[] = []
    for (const [at, item] of (items ?? []).entries()) addFinding(errors, validate(this.index(at), item, at))
    return errors
  }

  /** An error for each problem that `rule` finds in the value. */
  check<T>(value: T, rule: (value: T) => readonly string[], origin?: string): FieldError[] {
    return rule(value).map((problem) => this.invalid(value, problem, origin))
  }

  invalid(badValue: unknown, detail: string, origin?: string): FieldError {
    return this.#error('FieldValueInvalid', badValue, detail, origin)
  }

  typeInvalid(badValue: unknown, detail: string): FieldError {
    return this.#error('FieldValueTypeInvalid', badValue, detail)
  }

  required(detail = ''): FieldError {
    return this.#error('FieldValueRequired', '', detail)
  }

  notFound(badValue: unknown): FieldError {
    return this.#error('FieldValueNotFound', badValue)
  }

  duplicate(badValue: unknown): FieldError {
    return this.#error('FieldValueDuplicate', badValue)
  }

  forbidden(detail: string): FieldError {
    return this.#error('FieldValueForbidden', '', detail)
  }

  /** Prints the supported values in the given order; upstream's callers mostly sort them first. */
  notSupported(badValue: unknown, supported: readonly string[]): FieldError {
    const detail = supported.length > 0 ? `supported values: ${supported.map(goQuote).join(', ')}` : ''
    return this.#error('FieldValueNotSupported', badValue, detail)
  }

  /** `notSupported` with the values in the order of Go's sorted sets. */
  notInSet(badValue: unknown, supported: Iterable<string>): FieldError {
    return this.notSupported(badValue, [...supported].sort(compareText))
  }

  /** Never prints the value. A negative limit is not printed either. */
  tooLong(limit: number, unit: 'byte' | 'character' = 'byte'): FieldError {
    const detail = limit < 0 ? 'value is too long' : `may not be more than ${counted(limit, unit)}`
    return this.#error('FieldValueTooLong', '<value omitted>', detail)
  }

  tooShort(badValue: string, least: number): FieldError {
    const detail = least < 0 ? 'value is too short' : `must be at least ${counted(least, 'character')}`
    return this.#error('FieldValueTooShort', badValue, detail)
  }

  /** A negative `actual` or `limit` is not printed. */
  tooMany(actual: number, limit: number): FieldError {
    const detail = limit < 0 ? 'has too many items' : `must have at most ${counted(limit, 'item')}`
    return this.#error('FieldValueTooMany', actual < 0 ? omitted : actual, detail)
  }

  tooFew(actual: number, least: number): FieldError {
    const detail = least < 0 ? 'has too few items' : `must have at least ${counted(least, 'item')}`
    return this.#error('FieldValueTooFew', actual, detail)
  }

  internal(cause: Error): FieldError {
    return this.#error('InternalError', cause, cause.message)
  }

  #error(type: FieldErrorType, badValue: unknown, detail = '', origin?: string): FieldError {
    const field = this.toString()
    return count(origin === undefined ? { type, field, badValue, detail } : { type, field, badValue, detail, origin })
  }
}

/** A path from the root; the name may have dots and may be empty, for the root itself. */
export function fieldPath(name: string): FieldPath {
  return new FieldPath(name)
}

/** The same errors with the violated rule. */
export function withOrigin(origin: string, errors: readonly FieldError[]): FieldError[] {
  return errors.map((error) => ({ ...error, origin }))
}

function counted(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** The maximum number of errors for one object. Upstream has no limit. */
const MAX_ERRORS = 10_000

/** Thrown for too many errors, and caught in this file. */
const OVERFLOW = new Error('Too many field errors')

let collected: FieldError[] | undefined

/**
 * The errors of `validate`. After too many errors it is aborted, and the errors so far are returned, because checking
 * all elements of an invalid list is expensive.
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

function count(error: FieldError): FieldError {
  if (collected !== undefined && collected.push(error) > MAX_ERRORS) throw OVERFLOW
  return error
}
