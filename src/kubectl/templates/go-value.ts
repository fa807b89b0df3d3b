/**
 * Formats JSON values as Go's fmt does: `map[a:1 b:[x y]]` for `%v`, `map[string]interface {}{"a":1}` for `%#v`.
 * kubectl decodes integers as int64; templates decode all numbers as float64.
 */
import { goNumber, goQuote } from '#lib/go/text.ts'
import { isJsonObject, JsonNumber } from '#lib/json/value.ts'
import { compareUtf8 } from '#lib/json/write.ts'

/** Formats a number that is no bigint. */
export type NumberText = (value: number) => string

/** `%v`. */
export function goShow(value: unknown, number: NumberText = goNumber): string {
  if (value === null || value === undefined) return '<nil>'
  if (typeof value === 'number') return number(value)
  if (value instanceof JsonNumber) return number(value.valueOf())
  if (Array.isArray(value)) return `[${value.map((item) => goShow(item, number)).join(' ')}]`
  if (!isJsonObject(value)) return `${value as string | bigint | boolean}`
  const entries = sortedKeys(value).map((key) => `${key}:${goShow(value[key], number)}`)
  return `map[${entries.join(' ')}]`
}

/** `%#v`. */
export function goSyntax(value: unknown, number: NumberText = goNumber): string {
  if (value === null || value === undefined) return 'interface {}(nil)'
  if (typeof value === 'string') return goQuote(value)
  if (Array.isArray(value)) return `[]interface {}{${value.map((item) => goSyntax(item, number)).join(', ')}}`
  if (!isJsonObject(value)) return goShow(value, number)
  const entries = sortedKeys(value).map((key) => `${goQuote(key)}:${goSyntax(value[key], number)}`)
  return `map[string]interface {}{${entries.join(', ')}}`
}

/** The Go type name of a JSON value in an unstructured object. */
export function goTypeName(value: unknown): string {
  if (value === null || value === undefined) return '<nil>'
  if (Array.isArray(value)) return '[]interface {}'
  if (isJsonObject(value)) return 'map[string]interface {}'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  return isGoInt(value) ? 'int64' : 'float64'
}

/** True if a number of an unstructured object is an int64. */
export function isGoInt(value: unknown): boolean {
  return typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value))
}

export function sortedKeys(value: object): string[] {
  return Object.keys(value).sort(compareUtf8)
}
