/** Reads and writes fields of custom resources by simple paths, `.spec.replicas`, for scale and selectable fields. */
import { isJsonObject, type JsonValue } from '#lib/json/value.ts'

export function segmentsOf(path: string): readonly string[] {
  return path.replace(/^\./, '').split('.')
}

export function readField(object: object, segments: readonly string[]): JsonValue | undefined {
  let value = object as unknown as JsonValue | undefined
  for (const segment of segments) {
    if (!isJsonObject(value) || !Object.hasOwn(value, segment)) return undefined
    value = value[segment]
  }
  return value
}

/** Creates missing objects on the way. */
export function writeField(object: object, segments: readonly string[], value: JsonValue): void {
  let place = object as Record<string, JsonValue>
  for (const segment of segments.slice(0, -1)) {
    const next = place[segment]
    const inner = isJsonObject(next) ? next : {}
    place[segment] = inner
    place = inner
  }
  const last = segments.at(-1)
  if (last !== undefined) place[last] = value
}

/** The text for selectors: a missing value is the empty text. */
export function fieldText(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return typeof value === 'boolean' || typeof value === 'number' || typeof value === 'bigint' ? String(value) : ''
}
