/**
 * The value types of flags: how to parse a value, how help shows a value, and what a repeated flag means. Flags with
 * several values are in list-kinds.ts.
 */

import { durationMs, durationOfMs } from '../go/duration.ts'
import { goQuote } from '../go/text.ts'
import { formatFloat, parseBool, parseFloating, parseInteger, parseUnsigned } from './go-literals.ts'

export interface Kind<T> {
  /** The name pflag has for it. */
  readonly type: string
  /** The word after the flag in help; empty for none. */
  readonly hint: string
  /** Throws an Error whose message ends the sentence `invalid argument "x" for "--flag" flag: …`. */
  parse(text: string): T
  /** The value as help shows it. */
  print(value: T): string
  /** Printed values too plain to be shown as `(default …)`. */
  readonly plain: readonly string[]
  /** The default of a flag that names none. Absent: that of an empty text. */
  readonly zero?: T
  /** The value if the flag is given without one. Absent: it needs one. */
  readonly alone?: string
  /** Adds a repeated flag's value to those given before. Absent: the last one wins. */
  join?(before: T, next: T): T
  /** Takes the value of a config file's field. Absent: booleans, numbers and strings are parsed as their text. */
  read?(field: unknown): T
  /** The message for the user who chose this value. */
  warnings?(value: T): readonly string[]
}

export const bool: Kind<boolean> = {
  type: 'bool',
  hint: '',
  parse: parseBool,
  print: String,
  plain: ['false'],
  zero: false,
  alone: 'true',
}

/** A whole number of at most 64 bits that JavaScript can hold exactly. */
export const int: Kind<number> = {
  type: 'int',
  hint: 'int',
  parse: (text) => parseInteger(text),
  print: String,
  plain: ['0'],
  zero: 0,
}

export const int32: Kind<number> = {
  type: 'int32',
  hint: 'int32',
  parse: (text) => parseInteger(text, 32),
  print: String,
  plain: ['0'],
  zero: 0,
}

export const uint: Kind<number> = {
  type: 'uint',
  hint: 'uint',
  parse: (text) => parseUnsigned(text),
  print: String,
  plain: ['0'],
  zero: 0,
}

export const float: Kind<number> = {
  type: 'float64',
  hint: 'float',
  parse: (text) => parseFloating(text),
  print: formatFloat,
  plain: ['0'],
  zero: 0,
}

export const float32: Kind<number> = {
  type: 'float32',
  hint: 'float32',
  parse: (text) => parseFloating(text, 32),
  print: formatFloat,
  plain: ['0'],
  zero: 0,
}

export const string: Kind<string> = {
  type: 'string',
  hint: 'string',
  parse: (text) => text,
  print: String,
  plain: [''],
}

/** Go's duration syntax (`1h30m`, `250ms`); the value is in milliseconds. */
export const duration: Kind<number> = {
  type: 'duration',
  hint: 'duration',
  parse: durationMs,
  print: durationOfMs,
  plain: ['0', '0s'],
  zero: 0,
}

/** One of a few words. */
export function oneOf<const V extends string>(...choices: readonly V[]): Kind<V> {
  const expected = choices.map((choice) => goQuote(choice)).join(', ')
  return {
    type: 'string',
    hint: 'string',
    parse: (text) => choices.find((choice) => choice === text) ?? fail(`must be one of ${expected}`),
    print: String,
    plain: [''],
  }
}

/** A kind for values of one's own: quantities, selectors, port ranges. `parse` throws what the user should read. */
export function customKind<T>(type: string, parse: (text: string) => T, print: (value: T) => string): Kind<T> {
  return { type, hint: type, parse, print, plain: ['', '0', 'false', '<nil>'] }
}

function fail(message: string): never {
  throw new Error(message)
}
