/** OpenAPI v2: one document for everything, in JSON or in the protobuf form most Go clients ask for. */
import { createHash } from 'node:crypto'

import type { Kind } from '#apis/kinds.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import type { Answer, Call } from '../call.ts'
import { acceptsGzip, compressed } from '../handlers/list-body.ts'
import { type Definition, V2 } from './definitions.ts'
import {
  createReferences,
  type Describe,
  factsOf,
  type OpenApiOptions,
  type References,
  sameFacts,
  sortedDefinitions,
} from './document.ts'
import { mergeSwaggers } from './merge-v2.ts'
import { type ApiPath, type Operation, type Parameter, pathsOf, sharedParameters } from './operations.ts'
import { rootPaths } from './root-paths.ts'

const PROTOBUF_ASKED = /application\/com\.github\.proto-openapi\.spec\.v2@v1\.0\+protobuf/
const PROTOBUF_ANSWERED = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

interface Made {
  /** Which kinds it was made of: made anew when they change. */
  readonly of: readonly unknown[]
  readonly swagger: Definition
  readonly text: string
  readonly etag: string
  protobuf: Buffer | undefined
  /** Compressed once for each form, by its Content-Type. */
  readonly packed: Map<string, Promise<Answer>>
}

/** Answers `/openapi/v2`; undefined for all other paths. */
export function createOpenApiV2(options: OpenApiOptions): (call: Call) => Promise<Answer> | undefined {
  let made: Made | undefined
  const current = async (): Promise<Made> => {
    const { describeDefinition } = await import('./descriptions.ts')
    const kinds = options.groups().flatMap(({ versions }) => versions.flatMap((version) => version.kinds))
    const of = [...factsOf(kinds, options), ...(options.aggregated?.swaggers() ?? [])]
    made = made !== undefined && sameFacts(made.of, of) ? made : make(options, kinds, of, describeDefinition)
    return made
  }
  return (call) => (call.info.path === '/openapi/v2' ? current().then((document) => answer(call, document)) : undefined)
}

async function answer(call: Call, made: Made): Promise<Answer> {
  const protobuf = PROTOBUF_ASKED.test(call.header('accept'))
  const contentType = protobuf ? PROTOBUF_ANSWERED : 'application/json'
  const headers = { Etag: made.etag, Vary: 'Accept-Encoding, Accept' }
  if (call.header('if-none-match') === made.etag) return { status: 304, contentType, body: '', headers }
  if (!acceptsGzip(call)) return { status: 200, contentType, body: await bodyOf(made, protobuf), headers }
  let packed = made.packed.get(contentType)
  if (packed === undefined) {
    packed = bodyOf(made, protobuf).then((body) => compressed(call, { status: 200, contentType, body, headers }))
    made.packed.set(contentType, packed)
  }
  return packed
}

async function bodyOf(made: Made, protobuf: boolean): Promise<Buffer> {
  if (!protobuf) return Buffer.from(made.text)
  const { encodeOpenApiV2 } = await import('./v2-protobuf.ts')
  made.protobuf ??= encodeOpenApiV2(made.swagger)
  return made.protobuf
}

function make(options: OpenApiOptions, kinds: readonly Kind[], of: Made['of'], describe: Describe): Made {
  const swagger = mergeSwaggers(buildDocument(kinds, options, describe), options.aggregated?.swaggers() ?? [])
  const text = encodeJson(swagger)
  const etag = `"${createHash('sha512').update(text).digest('hex').toUpperCase()}"`
  return { of, swagger, text, etag, protobuf: undefined, packed: new Map() }
}

function buildDocument(kinds: readonly Kind[], options: OpenApiOptions, describe: Describe): Definition {
  const references = createReferences(V2, describe, kinds, options)
  const groups = options.groups()
  const versions = groups.flatMap(({ versions: served }) => served)
  const paths = [...rootPaths(groups), ...versions.flatMap((version) => pathsOf(version.kinds, options))]
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: options.version },
    paths: Object.fromEntries(paths.map((path) => [path.path, pathItem(path, references)])),
    definitions: sortedDefinitions(references),
    securityDefinitions: {
      BearerToken: { type: 'apiKey', description: 'Bearer Token authentication', name: 'authorization', in: 'header' },
    },
    security: [{ BearerToken: [] }],
  }
}

function pathItem(path: ApiPath, references: References): Definition {
  const { shared, own } = sharedParameters(path)
  const methods = path.operations.map((operation) => {
    const item = operationItem(operation, own(operation), references)
    return [operation.method, { ...item, tags: [path.tag] }]
  })
  return { ...Object.fromEntries(methods), ...(shared.length === 0 ? {} : { parameters: shared.map(parameterItem) }) }
}

const PATCHES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

const OUTCOMES: Readonly<Record<number, string>> = { 200: 'OK', 201: 'Created', 202: 'Accepted' }

function operationItem(operation: Operation, own: readonly Parameter[], references: References): Definition {
  const { id, action, kind, body, answer: answered, statuses, produces } = operation
  const schema = references.refOf(answered)
  const responses = statuses.map((status) => [status, { description: OUTCOMES[status], schema }])
  const parameters = [...(body === undefined ? [] : [bodyItem(body, references)]), ...own.map(parameterItem)]
  return {
    ...consumed(operation),
    produces,
    schemes: ['https'],
    operationId: id,
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: { ...Object.fromEntries(responses), '401': { description: 'Unauthorized' } },
    ...(action === undefined ? {} : { 'x-kubernetes-action': action }),
    ...(kind === undefined
      ? {}
      : { 'x-kubernetes-group-version-kind': { group: kind.group, kind: kind.kind, version: kind.version } }),
  }
}

/** Discovery says what it speaks even where nothing is sent. */
function consumed({ action, body, answer: answered, produces }: Operation): Definition {
  if (body === 'patch') return { consumes: PATCHES }
  if (action !== undefined) return { consumes: ['*/*'] }
  return answered === 'text' ? {} : { consumes: produces }
}

function bodyItem(body: GroupVersionKind | 'patch', { refOf, patch }: References): Definition {
  const schema = body === 'patch' ? patch() : refOf(body)
  const isOptional = body !== 'patch' && body.kind === 'DeleteOptions'
  return { name: 'body', in: 'body', ...(isOptional ? {} : { required: true }), schema }
}

function parameterItem({ name, in: place, type }: Parameter): Definition {
  return { name, in: place, type, uniqueItems: true, ...(place === 'path' ? { required: true } : {}) }
}
