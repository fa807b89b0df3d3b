/** The fields for which the documents list every value, as upstream publishes them: data, read when OpenAPI is asked for. */
import { readFileSync } from 'node:fs'

/** Fields are named as in the documents, without `io.k8s.` in front. */
let valuesByField: ReadonlyMap<string, readonly string[]> | undefined

/** The values of a field of a definition; undefined when it may hold anything. */
export function valuesOf(definition: string, field: string): readonly string[] | undefined {
  valuesByField ??= new Map(
    Object.entries(
      JSON.parse(readFileSync(new URL('./enums.json', import.meta.url), 'utf8')) as Record<string, string[]>,
    ),
  )
  return valuesByField.get(`${definition.replace(/^io\.k8s\./, '')}.${field}`)
}
