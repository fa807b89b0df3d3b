/**
 * The fields with enumerated values in the documents, as upstream publishes them. The data is loaded when OpenAPI is
 * requested.
 */
import { readFileSync } from 'node:fs'

/** Field names as in the documents, without the prefix `io.k8s.`. */
let valuesByField: ReadonlyMap<string, readonly string[]> | undefined

/** The values of a field of a definition; undefined if it is not enumerated. */
export function valuesOf(definition: string, field: string): readonly string[] | undefined {
  valuesByField ??= new Map(
    Object.entries(
      JSON.parse(readFileSync(new URL('./enums.json', import.meta.url), 'utf8')) as Record<string, string[]>,
    ),
  )
  return valuesByField.get(`${definition.replace(/^io\.k8s\./, '')}.${field}`)
}
