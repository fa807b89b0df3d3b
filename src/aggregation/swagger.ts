/** The part of a document of OpenAPI v2 that describes the paths of one group version, and what those refer to. */
import type { Swagger } from '#apiserver/aggregated.ts'
import { isJsonObject, type JsonObject } from '#lib/json-value.ts'

const PREFIX = '#/definitions/'

/** Undefined when the document has none of these paths. Throws for what is no such document. */
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

/** The definitions that something refers to, directly or through others. */
function reachable(from: unknown, definitions: JsonObject): JsonObject {
  const found: JsonObject = {}
  const open: unknown[] = [from]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null) continue
    for (const part of Object.values(value)) open.push(part)
    if (isJsonObject(value)) open.push(definitionAt(value, definitions, found))
  }
  return Object.fromEntries(Object.entries(definitions).filter(([name]) => Object.hasOwn(found, name)))
}

/** The definition a reference is to, once. */
function definitionAt({ $ref: ref }: JsonObject, definitions: JsonObject, found: JsonObject): unknown {
  if (typeof ref !== 'string' || !ref.startsWith(PREFIX)) return undefined
  const name = ref.slice(PREFIX.length)
  if (!Object.hasOwn(definitions, name) || Object.hasOwn(found, name)) return undefined
  found[name] = true
  return definitions[name]
}
