/** Extracts the part of an OpenAPI v2 document for the paths of one group version, with its references. */
import type { Swagger } from '#apiserver/aggregated.ts'
import { isJsonObject, type JsonObject } from '#lib/json/value.ts'

const PREFIX = '#/definitions/'

/** Undefined if the document has none of these paths. Throws for a malformed document. */
export function filterSwagger(document: unknown, under: string): Swagger | undefined {
  const { info, paths, definitions = {} }: JsonObject = isJsonObject(document) ? document : {}
  if (!isJsonObject(paths) || !isJsonObject(definitions)) throw new Error('the document of OpenAPI v2 has no paths')
  const kept = Object.entries(paths).filter(([path]) => path.startsWith(under))
  if (kept.length === 0) return undefined
  return {
    ...(info !== undefined && { info }),
    paths: Object.fromEntries(kept),
    definitions: reachable(kept, definitions),
  }
}

/** Deeper than any real schema, and well within the stack. */
const MAX_DEPTH = 200

/** The referenced definitions, directly or transitively. */
function reachable(from: unknown, definitions: JsonObject): JsonObject {
  const found: JsonObject = {}
  const open: (readonly [value: unknown, depth: number])[] = [[from, 0]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, depth] = next
    if (typeof value !== 'object' || value === null) continue
    if (depth > MAX_DEPTH) throw new Error('the document of OpenAPI v2 is nested too deeply')
    for (const part of Object.values(value)) open.push([part, depth + 1])
    if (isJsonObject(value)) open.push([definitionAt(value, definitions, found), 0])
  }
  return Object.fromEntries(Object.entries(definitions).filter(([name]) => Object.hasOwn(found, name)))
}

/** The definition of a reference, once. */
function definitionAt({ $ref: ref }: JsonObject, definitions: JsonObject, found: JsonObject): unknown {
  if (typeof ref !== 'string' || !ref.startsWith(PREFIX)) return undefined
  const name = ref.slice(PREFIX.length)
  if (!Object.hasOwn(definitions, name) || Object.hasOwn(found, name)) return undefined
  found[name] = true
  return definitions[name]
}
