/** Errors of strategic merge patches, with upstream's messages. */
import { goTypeOf, type JsonMap, printGo } from './json-map.ts'

/**
 * - `bad-format`: the patch is not a strategic merge patch (400)
 * - `unprocessable`: it is one, but asks for what is not supported (422)
 * - `failed`: anything else; upstream answers 500 with the message
 */
export type StrategicMergeErrorCode = 'bad-format' | 'unprocessable' | 'failed'

export class StrategicMergeError extends Error {
  readonly code: StrategicMergeErrorCode

  constructor(code: StrategicMergeErrorCode, message: string) {
    super(message)
    this.name = 'StrategicMergeError'
    this.code = code
  }
}

export type Directive = 'primitive list' | 'retainKeys' | 'setElementOrder list'

export function badFormat(directive: Directive): StrategicMergeError {
  return new StrategicMergeError('bad-format', `invalid patch format of ${directive}`)
}

export function failed(message: string): StrategicMergeError {
  return new StrategicMergeError('failed', message)
}

export function badType(expected: 'map' | 'list', value: unknown): StrategicMergeError {
  const type = expected === 'map' ? 'map[string]interface {}' : '[]interface {}'
  return failed(`expected a ${type}, but received a ${goTypeOf(value) ?? '%!s(<nil>)'}`)
}

export function noMergeKey(item: JsonMap, mergeKey: string): StrategicMergeError {
  return failed(`map: ${printGo(item)} does not contain declared merge key: ${mergeKey}`)
}

export function badPatchType(directive: unknown, map: JsonMap): StrategicMergeError {
  return failed(`unknown patch type: ${printAsString(directive)} in map: ${printGo(map)}`)
}

/** Go's `%s`, which marks values that are no strings. */
function printAsString(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value)) return `[${value.map(printAsString).join(' ')}]`
  const type = goTypeOf(value)
  if (type === undefined) return '%!s(<nil>)'
  if (typeof value !== 'object') return `%!s(${type}=${printGo(value)})`
  const entries = Object.entries(value as JsonMap).sort(([a], [b]) => (a < b ? -1 : 1))
  return `map[${entries.map(([key, part]) => `${key}:${printAsString(part)}`).join(' ')}]`
}
