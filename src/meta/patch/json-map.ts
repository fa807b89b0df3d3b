/** Maps of untyped JSON in which `__proto__` is an ordinary key, and their text as Go prints it. */
import { goNumber } from '#lib/go/text.ts'

export type JsonMap = Record<string, unknown>

export function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Sets an own property of any name. */
export function put(map: JsonMap, key: string, value: unknown): void {
  if (key === '__proto__')
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true })
  else map[key] = value
}

/** The own property of that name; undefined if it does not exist. */
export function get(map: Readonly<JsonMap>, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined
}

/** A copy without `key`. */
export function without(map: JsonMap, key: string): JsonMap {
  return Object.fromEntries(Object.entries(map).filter(([name]) => name !== key))
}

/** Go's `%v` of a value, which some of upstream's errors contain: `map[foo:1]`, `[a b]`. */
export function printGo(value: unknown): string {
  if (value === null || value === undefined) return '<nil>'
  if (Array.isArray(value)) return `[${value.map(printGo).join(' ')}]`
  if (typeof value === 'number' || typeof value === 'bigint') return goNumber(value)
  if (typeof value === 'string' || typeof value === 'boolean') return String(value)
  const map = value as JsonMap
  const keys = Object.keys(map).sort()
  return `map[${keys.map((key) => `${key}:${printGo(map[key])}`).join(' ')}]`
}

/** The Go type of a decoded JSON value; undefined for null. */
export function goTypeOf(value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  if (Array.isArray(value)) return '[]interface {}'
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'boolean':
      return 'bool'
    case 'bigint':
      return 'int64'
    case 'number':
      return Number.isInteger(value) ? 'int64' : 'float64'
    default:
      return 'map[string]interface {}'
  }
}
