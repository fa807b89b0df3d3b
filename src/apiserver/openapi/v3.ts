/** OpenAPI v3: an index with a hash for each document, and the documents, made on demand. */
import { createHash } from 'node:crypto'

import type { Kind } from '#apis/kinds.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import { isJsonObject } from '#lib/json/value.ts'
import { runInSlices, type Steps } from '#lib/time-slicing.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import type { Definition } from '../registry/openapi-definition.ts'
import { V3 } from './definitions.ts'
import { describeParameter } from './descriptions.ts'
import {
  createReferences,
  type Describe,
  factsOf,
  type OpenApiOptions,
  type References,
  sameFacts,
  sortedDefinitions,
} from './document.ts'
import {
  type ApiPath,
  CUSTOM_MEDIA_TYPES,
  type Operation,
  type Parameter,
  rootOf,
  sharedParameters,
  versionPaths,
} from './operations.ts'
import { rootPaths } from './root-paths.ts'

export interface OpenApiDocument {
  /** Made on demand where possible. */
  readonly text: () => Promise<string>
  /** Upper-case hexadecimal SHA-512. */
  readonly hash: string
}

interface CachedDocument {
  readonly document: Promise<OpenApiDocument>
  /** Its inputs: the document is made again when they change. */
  readonly facts: readonly unknown[]
}

export function openApiDocument(text: string): OpenApiDocument {
  return { text: async () => text, hash: sha512(text) }
}

/** A year: the cache lifetime of a document that is requested by its hash. */
const FOREVER_MS = 365 * 24 * 3600 * 1000

/** Answers `/openapi/v3` and below; undefined for all other paths. */
export function createOpenApiV3(
  options: OpenApiOptions,
  nowMs: () => number,
): (call: Call) => Promise<Answer> | undefined {
  const documents = new Map<string, CachedDocument>()
  const documentOf = (source: Source, describe: Describe): Promise<OpenApiDocument> => {
    const facts = factsOf(source.kinds, options)
    const known = documents.get(source.name)
    if (known !== undefined && sameFacts(known.facts, facts)) return known.document
    const document = makeDocument(source, options, describe)
    documents.set(source.name, { document, facts })
    // A failure is retried by the next request.
    document.catch(() => documents.delete(source.name))
    return document
  }
  const answer = async (call: Call, path: string): Promise<Answer> => {
    const { describeDefinition } = await import('./descriptions.ts')
    const sources = sourcesOf(options)
    if (path === '' || path === '/') {
      const others = options.aggregated?.openApiIndex() ?? NO_OTHERS
      return indexAnswer(sources, (one) => documentOf(one, describeDefinition), others)
    }
    const source = sources.find(({ name }) => `/${name}` === path)
    const passedOn = source === undefined ? options.aggregated?.openApi(call, path.slice(1)) : undefined
    if (passedOn !== undefined) return passedOn
    if (source === undefined) return { status: 404, contentType: 'application/json', body: '' }
    return documentAnswer(call, await documentOf(source, describeDefinition), nowMs())
  }
  return (call) => {
    const { path } = call.info
    const isOurs = path === ROOT || path.startsWith(`${ROOT}/`)
    return isOurs ? answer(call, path.slice(ROOT.length)) : undefined
  }
}

async function makeDocument(source: Source, options: OpenApiOptions, describe: Describe): Promise<OpenApiDocument> {
  let written: Promise<string> | undefined
  const text = (): Promise<string> => (written ??= runInSlices(writeDocument(source, options, describe)))
  return { text, hash: sha512(identityOf(source, options) ?? (await text())) }
}

/** For custom resources only: a request for the index need not wait until all are described. */
function identityOf({ kinds, name }: Source, { customOf }: OpenApiOptions): string | undefined {
  const customs = kinds.map((kind) => customOf(kind)?.identity)
  if (kinds.length === 0 || customs.includes(undefined)) return undefined
  return JSON.stringify([name, customs])
}

function sha512(text: string): string {
  return createHash('sha512').update(text).digest('hex').toUpperCase()
}

const ROOT = '/openapi/v3'
const NO_OTHERS: ReadonlyMap<string, string> = new Map()

/** The inputs of one document. */
interface Source {
  /** Its path without the leading slash. */
  readonly name: string
  readonly kinds: readonly Kind[]
  readonly paths: () => readonly ApiPath[]
}

function sourcesOf(options: OpenApiOptions): Source[] {
  const groups = options.groups()
  const roots = rootPaths(groups).map((path) => ({ name: path.document, kinds: [], paths: () => [path] }))
  const versions = groups.flatMap(({ versions: served }) => served)
  return [
    ...roots,
    ...versions.map((version) => ({
      name: rootOf(version).slice(1),
      kinds: version.kinds,
      paths: () => versionPaths(version.kinds, options),
    })),
  ]
}

/** Our documents and those of `others`, by name; ours have precedence. */
async function indexAnswer(
  sources: readonly Source[],
  documentOf: (source: Source) => Promise<OpenApiDocument>,
  others: ReadonlyMap<string, string>,
): Promise<Answer> {
  const urlOf = async (source: Source): Promise<readonly [string, string]> => {
    const { hash } = await documentOf(source)
    return [source.name, `${ROOT}/${source.name}?hash=${hash}`]
  }
  const own = await Promise.all(sources.map(urlOf))
  const urls = new Map([...others, ...own])
  const paths = Object.fromEntries([...urls].map(([name, url]) => [name, { serverRelativeURL: url }]))
  return { status: 200, contentType: 'application/json', body: JSON.stringify({ paths }) }
}

export async function documentAnswer(call: Call, document: OpenApiDocument, nowMs: number): Promise<Answer> {
  const { hash } = document
  const requestedHash = call.query.get('hash')
  const contentType = 'application/json'
  if (requestedHash !== null && requestedHash !== hash) {
    return { status: 301, contentType, body: '', headers: { Location: `${call.info.path}?hash=${hash}` } }
  }
  const etag = `"${hash}"`
  const lasting =
    requestedHash === null
      ? {}
      : { 'Cache-Control': 'public, immutable', Expires: new Date(nowMs + FOREVER_MS).toUTCString() }
  const headers = { Etag: etag, Vary: 'Accept-Encoding, Accept', ...lasting }
  if (call.header('if-none-match') === etag) return { status: 304, contentType, body: '', headers }
  return { status: 200, contentType, body: Buffer.from(await document.text()), headers }
}

/** A definition of a custom resource may be as large as all built-in ones of a group. */
function* writeDocument(source: Source, options: OpenApiOptions, describe: Describe): Steps<string> {
  const { kinds, paths } = source
  const references = createReferences(V3, describe, kinds, options)
  const items: Record<string, Definition> = {}
  for (const path of paths()) {
    yield
    items[path.path] = pathItem(path, references)
  }
  return yield* writeWhole(wholeOf(source, options, { items, schemas: sortedDefinitions(references) }))
}

interface Parts {
  readonly items: Definition
  readonly schemas: Definition
}

function wholeOf(source: Source, options: OpenApiOptions, { items, schemas }: Parts): Definition {
  const securitySchemes = {
    BearerToken: { type: 'apiKey', description: 'Bearer Token authentication', name: 'authorization', in: 'header' },
  }
  if (identityOf(source, options) !== undefined) {
    return { openapi: '3.0.0', info: CUSTOM_INFO, paths: items, components: { schemas } }
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: options.version },
    paths: items,
    components: { ...(Object.keys(schemas).length === 0 ? {} : { schemas }), securitySchemes },
  }
}

/** The members of the document and of its parts, one by one. */
function* writeWhole(whole: Definition, depth = 0): Steps<string> {
  const members: string[] = []
  for (const [name, value] of Object.entries(whole)) {
    yield
    const isPart = depth < PART_DEPTH && isJsonObject(value)
    members.push(`${JSON.stringify(name)}:${isPart ? yield* writeWhole(value, depth + 1) : encodeJson(value)}`)
  }
  return `{${members.join(',')}}`
}

/** `components.schemas`. */
const PART_DEPTH = 2

const CUSTOM_INFO = { title: 'Kubernetes CRD Swagger', version: 'v0.1.0' }

const PATCH_TYPES = [
  'application/apply-patch+yaml',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
]

function pathItem(path: ApiPath, references: References): Definition {
  const { shared, own } = sharedParameters(path)
  const methods = path.operations.map((operation) => {
    const item = operationItem(operation, own(operation), references)
    return [operation.method, { tags: [path.tag], ...item }]
  })
  return {
    ...Object.fromEntries(methods),
    ...(shared.length === 0 ? {} : { parameters: shared.map((one) => parameterItem(one, path.operations[0]?.kind)) }),
  }
}

const OUTCOMES: Readonly<Record<number, string>> = { 200: 'OK', 201: 'Created', 202: 'Accepted' }

function operationItem(operation: Operation, parameters: readonly Parameter[], references: References): Definition {
  const { id, action, kind, answer, statuses, produces } = operation
  const content = contentOf(produces.toSorted(), references.refOf(answer))
  const responses = statuses.map((status) => [status, { description: OUTCOMES[status], content }])
  return {
    operationId: id,
    ...(parameters.length === 0 ? {} : { parameters: parameters.map((one) => parameterItem(one, kind)) }),
    ...bodyItem(operation, references),
    responses: { ...Object.fromEntries(responses), '401': { description: 'Unauthorized' } },
    ...(action === undefined ? {} : { 'x-kubernetes-action': action }),
    ...(kind === undefined
      ? {}
      : { 'x-kubernetes-group-version-kind': { group: kind.group, version: kind.version, kind: kind.kind } }),
  }
}

function bodyItem({ body, isCustom = false }: Operation, { refOf, patch }: References): Definition {
  if (body === undefined) return {}
  if (body === 'patch') {
    const types = PATCH_TYPES.filter((type) => !isCustom || !type.includes('strategic'))
    return { requestBody: { content: contentOf(types, patch()), required: true } }
  }
  // The body of a DELETE is optional.
  const needed = body.kind === 'DeleteOptions' ? {} : { required: true }
  return { requestBody: { content: contentOf(isCustom ? CUSTOM_MEDIA_TYPES : ['*/*'], refOf(body)), ...needed } }
}

function contentOf(types: readonly string[], schema: Definition): Definition {
  return Object.fromEntries(types.map((type) => [type, { schema }]))
}

function parameterItem({ name, in: place, type }: Parameter, kind: GroupVersionKind | undefined): Definition {
  const description = describeParameter(name, place, kind?.kind)
  return {
    name,
    in: place,
    description,
    ...(place === 'path' ? { required: true } : {}),
    schema: { type, uniqueItems: true },
  }
}
