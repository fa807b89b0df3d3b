/**
 * Values as a Go template sees them. JSON integers are int64, other numbers float64; a bigint is an int. A reference
 * also records whether its static type is `interface {}`, because messages and some functions distinguish it.
 */
import { goDouble, goNumber } from '#lib/go/text.ts'
import { isJsonObject } from '#lib/json/value.ts'

import { goShow, isGoInt } from './go-value.ts'

/** A byte of text. */
export class GoByte {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }

  toString(): string {
    return String(this.value)
  }
}

/** A number with a fraction in the source, even if it is integral. */
export class GoFloat {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }

  toString(): string {
    return goDouble(this.value)
  }
}

export interface Reference {
  /** Undefined for a missing value. */
  readonly value: unknown
  readonly isInterface: boolean
}

export const NOTHING: Reference = { value: undefined, isInterface: false }

export function referTo(value: unknown): Reference {
  return { value, isInterface: false }
}

/** An element of a map or list. */
export function element(value: unknown): Reference {
  return { value, isInterface: true }
}

/** The dynamic value of an `interface {}`. Null becomes a missing value. */
export function inside({ value, isInterface }: Reference): Reference {
  return isInterface && value === null ? NOTHING : { value, isInterface: false }
}

export function typeOf({ value, isInterface }: Reference): string {
  return isInterface ? 'interface {}' : typeName(value)
}

export function typeName(value: unknown): string {
  if (value === null || value === undefined) return '<nil>'
  if (value instanceof GoByte) return 'uint8'
  if (value instanceof GoFloat) return 'float64'
  if (Array.isArray(value)) return '[]interface {}'
  if (isJsonObject(value)) return 'map[string]interface {}'
  const names: Record<string, string> = { string: 'string', boolean: 'bool', bigint: 'int' }
  return names[typeof value] ?? (isInt64(value) ? 'int64' : 'float64')
}

export type Basic = 'bool' | 'int' | 'uint' | 'float' | 'string' | undefined

export function basicKind(value: unknown): Basic {
  if (value instanceof GoByte) return 'uint'
  if (value instanceof GoFloat) return 'float'
  if (typeof value === 'number') return isInt64(value) ? 'int' : 'float'
  const kinds: Record<string, Basic> = { boolean: 'bool', bigint: 'int', string: 'string' }
  return kinds[typeof value]
}

const INT64_LIMIT = 2 ** 63

function isInt64(value: unknown): boolean {
  return isGoInt(value) && Math.abs(Number(value)) < INT64_LIMIT
}

/** Excludes the classes that wrap numbers. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return isJsonObject(value) && !(value instanceof GoByte) && !(value instanceof GoFloat)
}

/** The integer value; undefined if it is none. */
export function intOf(value: unknown): bigint | undefined {
  if (value instanceof GoByte) return BigInt(value.value)
  if (typeof value === 'number' && isInt64(value)) return BigInt(value)
  return typeof value === 'bigint' ? value : undefined
}

/** Go's truth for `if`. */
export function isTrue(value: unknown): boolean {
  if (value instanceof GoByte || value instanceof GoFloat) return value.value !== 0
  if (Array.isArray(value)) return value.length > 0
  if (isJsonObject(value)) return Object.keys(value).length > 0
  return Boolean(value)
}

/** `%v`. */
export function show(value: unknown): string {
  return value instanceof GoByte || value instanceof GoFloat ? value.toString() : goShow(value, goNumber)
}
