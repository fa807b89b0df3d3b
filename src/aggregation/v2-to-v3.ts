/**
 * Converts OpenAPI v2 to v3, for servers without v3. The schemas move: for bodies and responses beside their media
 * types, for parameters to a separate member, and for definitions under `components`.
 */
import type { Swagger } from '#apiserver/aggregated.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '#lib/json/value.ts'

const METHODS: ReadonlySet<string> = new Set(['get', 'put', 'post', 'delete', 'options', 'head', 'patch'])

/** A new document. Malformed parts stay unchanged. */
export function convertToV3({ info, paths, definitions }: Swagger): JsonObject {
  return withRoof({
    openapi: '3.0.0',
    info: (info ?? {}) as JsonValue,
    paths: mapMembers(paths, pathItem),
    components: { schemas: (definitions ?? {}) as JsonValue },
  }) as JsonObject
}

function mapMembers(value: unknown, map: (member: JsonObject, key: string) => JsonValue): JsonObject {
  const members = Object.entries(isJsonObject(value) ? value : {})
  return Object.fromEntries(members.map(([key, member]) => [key, isJsonObject(member) ? map(member, key) : member]))
}

function pathItem(item: JsonObject): JsonValue {
  const { parameters, ...members } = item
  const mapped = mapMembers(members, (member, key) => (METHODS.has(key) ? operation(member) : member))
  return Array.isArray(parameters) ? { ...mapped, parameters: parameters.map(parameter) } : mapped
}

function operation({ consumes, produces, schemes: _schemes, parameters, responses, ...rest }: JsonObject): JsonValue {
  const all = Array.isArray(parameters) ? parameters.filter(isJsonObject) : []
  const body = all.find((one) => one['in'] === 'body')
  const others = all.filter((one) => one !== body)
  return {
    ...rest,
    ...(others.length > 0 && { parameters: others.map(parameter) }),
    ...(body !== undefined && { requestBody: requestBody(body, mediaTypes(consumes)) }),
    responses: mapMembers(responses, ({ schema, ...response }) =>
      schema === undefined ? response : { ...response, content: contentOf(mediaTypes(produces), schema) },
    ),
  }
}

function requestBody({ schema = {}, required, description }: JsonObject, types: readonly string[]): JsonObject {
  return {
    ...(description !== undefined && { description }),
    content: contentOf(types, schema),
    ...(required !== undefined && { required }),
  }
}

function mediaTypes(types: JsonValue | undefined): readonly string[] {
  const named = Array.isArray(types) ? types.filter((type) => typeof type === 'string') : []
  return named.length > 0 ? named : ['*/*']
}

function contentOf(types: readonly string[], schema: JsonValue): JsonObject {
  return Object.fromEntries(types.map((type) => [type, { schema }]))
}

const OF_PARAMETERS: ReadonlySet<string> = new Set(['name', 'in', 'description', 'required', 'allowEmptyValue', '$ref'])

/** The name stays; the type becomes the schema. */
function parameter(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value
  const isOwn = ([key]: readonly [string, JsonValue]): boolean => OF_PARAMETERS.has(key) || key.startsWith('x-')
  const own = Object.entries(value).filter(isOwn)
  const schema = Object.entries(value).filter((member) => !isOwn(member))
  return { ...Object.fromEntries(own), ...(schema.length > 0 && { schema: Object.fromEntries(schema) }) }
}

/** References point to the v3 position of definitions. */
function withRoof(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withRoof)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) =>
      key === '$ref' && typeof member === 'string'
        ? [key, member.replace(/^#\/definitions\//, '#/components/schemas/')]
        : [key, withRoof(member)],
    ),
  )
}
