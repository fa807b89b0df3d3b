/** OpenAPI v3: an index with a hash for each group version, and a document for each, made when first asked for. */
import { createHash } from 'node:crypto'

import type { Kind, ServedGroup, ServedVersion } from '#apis/kinds.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { StructSchema } from '#meta/schema.ts'

import type { Answer, Call } from '../call.ts'
import { type Definition, Definitions, nameOf, V3 } from './definitions.ts'
import { describeDefinition } from './descriptions.ts'
import { type ApiPath, type Operation, type Parameter, pathsOf, rootOf } from './operations.ts'

export interface OpenApiOptions {
  readonly groups: () => readonly ServedGroup[]
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
}

interface Document {
  readonly text: string
  /** Upper-case hexadecimal SHA-512. */
  readonly hash: string
}

/** A year, which is how long a document that is named by its hash may be kept. */
const FOREVER_MS = 365 * 24 * 3600 * 1000

/** Answers `/openapi/v3` and below; undefined for all other paths. */
export function createOpenApiV3(options: OpenApiOptions, nowMs: () => number): (call: Call) => Answer | undefined {
  const documents = new Map<string, Document>()
  const documentOf = (version: ServedVersion): Document => {
    const key = `${rootOf(version)} ${version.kinds.map(({ plural }) => plural).join(' ')}`
    const known = documents.get(key)
    if (known !== undefined) return known
    const text = encodeJson(buildDocument(version, options.schemaFor))
    const made = { text, hash: createHash('sha512').update(text).digest('hex').toUpperCase() }
    documents.set(key, made)
    return made
  }
  return (call) => {
    const { path } = call.info
    if (path !== '/openapi/v3' && !path.startsWith('/openapi/v3/')) return undefined
    const versions = options.groups().flatMap((group) => group.versions)
    if (path === '/openapi/v3' || path === '/openapi/v3/') return indexAnswer(versions, documentOf)
    const wanted = path.slice('/openapi/v3'.length)
    const version = versions.find((one) => rootOf(one) === wanted)
    if (version === undefined) return { status: 404, contentType: 'application/json', body: '' }
    return documentAnswer(call, documentOf(version), nowMs())
  }
}

function indexAnswer(versions: readonly ServedVersion[], documentOf: (version: ServedVersion) => Document): Answer {
  const paths = Object.fromEntries(
    versions.map((version) => {
      const name = rootOf(version).slice(1)
      return [name, { serverRelativeURL: `/openapi/v3/${name}?hash=${documentOf(version).hash}` }]
    }),
  )
  return { status: 200, contentType: 'application/json', body: JSON.stringify({ paths }) }
}

function documentAnswer(call: Call, { text, hash }: Document, nowMs: number): Answer {
  const asked = call.query.get('hash')
  const contentType = 'application/json'
  if (asked !== null && asked !== hash) {
    return { status: 301, contentType, body: '', headers: { Location: `${call.info.path}?hash=${hash}` } }
  }
  const etag = `"${hash}"`
  const lasting =
    asked === null ? {} : { 'Cache-Control': 'public, immutable', Expires: new Date(nowMs + FOREVER_MS).toUTCString() }
  const headers = { Etag: etag, Vary: 'Accept-Encoding, Accept', ...lasting }
  if (call.header('if-none-match') === etag) return { status: 304, contentType, body: '', headers }
  return { status: 200, contentType, body: Buffer.from(text), headers }
}

function buildDocument(version: ServedVersion, schemaFor: OpenApiOptions['schemaFor']): Definition {
  const definitions = new Definitions(V3, describeDefinition, (name) => kinds.get(name) ?? [])
  const kinds = groupVersionKinds(version.kinds, schemaFor)
  const refOf = (gvk: GroupVersionKind): Definition => {
    const schema = schemaFor(gvk)
    return schema === undefined ? { type: 'object' } : definitions.ref(schema)
  }
  const tag = `${version.group === '' ? 'core' : version.group.split('.')[0]}_${version.version}`
  const paths = Object.fromEntries(pathsOf(version.kinds).map((path) => [path.path, pathItem(path, tag, refOf)]))
  definitions.found.set(PATCH_NAME, { type: 'object' })
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths,
    components: {
      schemas: Object.fromEntries([...definitions.found].sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { BearerToken: { type: 'apiKey', name: 'authorization', in: 'header' } },
    },
  }
}

const PATCH_NAME = 'io.k8s.apimachinery.pkg.apis.meta.v1.Patch'

/** Which definitions are kinds, and of which group versions. */
function groupVersionKinds(
  kinds: readonly Kind[],
  schemaFor: OpenApiOptions['schemaFor'],
): Map<string, GroupVersionKind[]> {
  const found = new Map<string, GroupVersionKind[]>()
  const note = ({ group, version, kind }: GroupVersionKind): void => {
    const schema = schemaFor({ group, version, kind })
    if (schema !== undefined) found.set(nameOf(schema), [{ group, kind, version }])
  }
  for (const kind of kinds) {
    note(kind)
    note({ ...kind, kind: kind.listKind })
    for (const part of kind.subresources) note(part.kind)
  }
  note({ group: '', version: 'v1', kind: 'Status' })
  note({ group: '', version: 'v1', kind: 'DeleteOptions' })
  return found
}

const ANSWER_TYPES = ['application/json', 'application/vnd.kubernetes.protobuf', 'application/yaml']
const STREAM_TYPES = ['application/json;stream=watch', 'application/vnd.kubernetes.protobuf;stream=watch']
const PATCH_TYPES = [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
]

function pathItem(
  { parameters, operations }: ApiPath,
  tag: string,
  refOf: (gvk: GroupVersionKind) => Definition,
): Definition {
  const methods = Object.fromEntries(
    operations.map((operation) => [operation.method, operationItem(operation, tag, refOf)]),
  )
  return { ...methods, parameters: parameters.map(parameterItem) }
}

function operationItem(operation: Operation, tag: string, refOf: (gvk: GroupVersionKind) => Definition): Definition {
  const { id, action, kind, parameters, body, answer, created } = operation
  const types = action === 'list' ? [...ANSWER_TYPES, ...STREAM_TYPES] : ANSWER_TYPES
  const response = { description: 'OK', content: contentOf(types, refOf(answer)) }
  return {
    tags: [tag],
    operationId: id,
    ...(parameters.length === 0 ? {} : { parameters: parameters.map(parameterItem) }),
    ...(body === undefined ? {} : { requestBody: bodyItem(body, refOf) }),
    responses: {
      '200': response,
      ...(created ? { '201': { ...response, description: 'Created' } } : {}),
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: kind.group, kind: kind.kind, version: kind.version },
  }
}

function bodyItem(body: GroupVersionKind | 'patch', refOf: (gvk: GroupVersionKind) => Definition): Definition {
  if (body === 'patch') return { content: contentOf(PATCH_TYPES, { $ref: V3.refPrefix + PATCH_NAME }), required: true }
  return { content: contentOf(['*/*'], refOf(body)) }
}

function contentOf(types: readonly string[], schema: Definition): Definition {
  return Object.fromEntries(types.map((type) => [type, { schema }]))
}

function parameterItem({ name, in: place, type }: Parameter): Definition {
  return { name, in: place, ...(place === 'path' ? { required: true } : {}), schema: { type, uniqueItems: true } }
}
