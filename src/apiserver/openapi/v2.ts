/** OpenAPI v2: one document, in JSON or in the protobuf form that most Go clients request. */
import { createHash } from 'node:crypto'

import type { Kind } from '#apis/kinds.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import { runInSlices, yieldToEventLoop } from '#lib/time-slicing.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import { acceptsGzip, compressed } from '../answers/gzip.ts'
import type { Definition } from '../registry/openapi-definition.ts'
import { V2 } from './definitions.ts'
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
import { mergeSwaggers } from './merge-v2.ts'
import {
  type ApiPath,
  CUSTOM_MEDIA_TYPES,
  type Operation,
  type Parameter,
  pathsOf,
  sharedParameters,
  versionPaths,
} from './operations.ts'
import { rootPaths } from './root-paths.ts'

const PROTOBUF_ASKED = /application\/com\.github\.proto-openapi\.spec\.v2@v1\.0\+protobuf/
const PROTOBUF_ANSWERED = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

interface SwaggerDocument {
  readonly swagger: Definition
  readonly text: string
  readonly etag: string
  protobuf: Promise<Buffer> | undefined
  /** Compressed once per form, by Content-Type. */
  readonly packed: Map<string, Promise<Answer>>
}

/** Answers `/openapi/v2`; undefined for all other paths. */
export function createOpenApiV2(options: OpenApiOptions): (call: Call) => Promise<Answer> | undefined {
  const maker = new Maker(options)
  let last: { readonly of: readonly unknown[]; readonly made: Promise<SwaggerDocument> } | undefined
  const current = async (): Promise<SwaggerDocument> => {
    const kinds = options.groups().flatMap(({ versions }) => versions.flatMap((version) => version.kinds))
    const others = options.aggregated?.swaggers() ?? []
    const of = [...factsOf(kinds, options), ...others]
    if (last === undefined || !sameFacts(last.of, of)) {
      const made = maker.make(kinds, others)
      // A failure is retried by the next request.
      made.catch(() => (last = undefined))
      last = { of, made }
    }
    return last.made
  }
  return (call) => (call.info.path === '/openapi/v2' ? current().then((document) => answer(call, document)) : undefined)
}

async function answer(call: Call, made: SwaggerDocument): Promise<Answer> {
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

async function bodyOf(made: SwaggerDocument, protobuf: boolean): Promise<Buffer> {
  if (!protobuf) return Buffer.from(made.text)
  const { encodeOpenApiV2 } = await import('./v2-protobuf.ts')
  made.protobuf ??= runInSlices(encodeOpenApiV2(made.swagger))
  return made.protobuf
}

type Members = Record<string, Definition>

/** The parts that some kinds contribute. */
interface Part {
  readonly paths: Members
  readonly definitions: Members
}

/** So much text takes a few milliseconds. */
const SLICE_CHARACTERS = 256 << 10

/**
 * Makes the document in slices: it is large, and is made again when a definition of a custom resource changes.
 * Unchanged parts are neither described nor encoded again.
 */
class Maker {
  readonly #options: OpenApiOptions
  #builtIn: { readonly of: readonly unknown[]; readonly part: Part } | undefined
  /** By custom resource; a changed one is another object. */
  readonly #customs = new WeakMap<Kind, Part>()
  /** The JSON of paths and definitions. */
  readonly #texts = new WeakMap<Definition, string>()

  constructor(options: OpenApiOptions) {
    this.#options = options
  }

  async make(kinds: readonly Kind[], others: Parameters<typeof mergeSwaggers>[1]): Promise<SwaggerDocument> {
    const { customOf, version } = this.#options
    const { describeDefinition } = await import('./descriptions.ts')
    const customs = kinds.filter((kind) => customOf(kind) !== undefined)
    const parts = [
      await this.#builtInPart(
        kinds.filter((kind) => !customs.includes(kind)),
        describeDefinition,
      ),
    ]
    for (const kind of customs) {
      parts.push(this.#customPart(kind, describeDefinition))
      await yieldToEventLoop()
    }
    const definitions = parts.flatMap((part) => Object.entries(part.definitions)).toReversed()
    const own = {
      swagger: '2.0',
      info: { title: 'Kubernetes', version },
      paths: Object.assign({}, ...parts.map(({ paths }) => paths)) as Members,
      definitions: Object.fromEntries(definitions.sort(([one], [other]) => (one < other ? -1 : 1))),
      securityDefinitions: SECURITY,
      security: [{ BearerToken: [] }],
    }
    const swagger = mergeSwaggers(own, others)
    const text = await this.#write(swagger)
    const etag = `"${await sha512(text)}"`
    return { swagger, text, etag, protobuf: undefined, packed: new Map() }
  }

  async #builtInPart(kinds: readonly Kind[], describe: Describe): Promise<Part> {
    const options = this.#options
    const groups = options.groups()
    const of = [...factsOf(kinds, options), ...rootPaths(groups).map(({ path }) => path)]
    if (this.#builtIn !== undefined && sameFacts(this.#builtIn.of, of)) return this.#builtIn.part
    const references = createReferences(V2, describe, kinds, options)
    const paths: Members = {}
    const add = (path: ApiPath): void => void (paths[path.path] = pathItem(path, references))
    rootPaths(groups).forEach(add)
    for (const version of groups.flatMap(({ versions }) => versions)) {
      pathsOf(
        version.kinds.filter((kind) => options.customOf(kind) === undefined),
        options,
      ).forEach(add)
      await yieldToEventLoop()
    }
    const part = { paths, definitions: sortedDefinitions(references) }
    this.#builtIn = { of, part }
    return part
  }

  #customPart(kind: Kind, describe: Describe): Part {
    const known = this.#customs.get(kind)
    if (known !== undefined) return known
    const references = createReferences(V2, describe, [kind], this.#options)
    const paths = versionPaths([kind], this.#options).map((path) => [path.path, pathItem(path, references)] as const)
    const part = { paths: Object.fromEntries(paths), definitions: sortedDefinitions(references) }
    this.#customs.set(kind, part)
    return part
  }

  async #write(swagger: Definition): Promise<string> {
    const pieces: string[] = []
    let size = 0
    for (const [name, value] of Object.entries(swagger)) {
      pieces.push(`${pieces.length === 0 ? '{' : ','}${JSON.stringify(name)}:`)
      if (name !== 'paths' && name !== 'definitions') {
        pieces.push(encodeJson(value))
        continue
      }
      let before = '{'
      for (const [member, definition] of Object.entries(value as Members)) {
        const text = this.#texts.get(definition) ?? encodeJson(definition)
        this.#texts.set(definition, text)
        pieces.push(`${before}${JSON.stringify(member)}:${text}`)
        before = ','
        size += text.length
        if (size < SLICE_CHARACTERS) continue
        size = 0
        await yieldToEventLoop()
      }
      pieces.push(before === '{' ? '{}' : '}')
    }
    return `${pieces.join('')}}`
  }
}

const SECURITY = {
  BearerToken: { type: 'apiKey', description: 'Bearer Token authentication', name: 'authorization', in: 'header' },
}

async function sha512(text: string): Promise<string> {
  const hash = createHash('sha512')
  for (let at = 0; at < text.length; at += SLICE_CHARACTERS) {
    hash.update(text.slice(at, at + SLICE_CHARACTERS))
    await yieldToEventLoop()
  }
  return hash.digest('hex').toUpperCase()
}

function pathItem(path: ApiPath, references: References): Definition {
  const { shared, own } = sharedParameters(path)
  const methods = path.operations.map((operation) => {
    const item = operationItem(operation, own(operation), references)
    return [operation.method, { ...item, tags: [path.tag] }]
  })
  return {
    ...Object.fromEntries(methods),
    ...(shared.length === 0 ? {} : { parameters: shared.map((one) => parameterItem(one, path.operations[0]?.kind)) }),
  }
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
  const parameters = [
    ...(body === undefined ? [] : [bodyItem(body, references)]),
    ...own.map((one) => parameterItem(one, kind)),
  ]
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

/** Discovery lists its media types even for operations without a body. */
function consumed({ action, body, answer: answered, produces, isCustom = false }: Operation): Definition {
  if (body === 'patch') return { consumes: PATCHES.filter((type) => !isCustom || !type.includes('strategic')) }
  if (isCustom) return { consumes: CUSTOM_MEDIA_TYPES }
  if (action !== undefined) return { consumes: ['*/*'] }
  return answered === 'text' ? {} : { consumes: produces }
}

function bodyItem(body: GroupVersionKind | 'patch', { refOf, patch }: References): Definition {
  const schema = body === 'patch' ? patch() : refOf(body)
  const isOptional = body !== 'patch' && body.kind === 'DeleteOptions'
  return { name: 'body', in: 'body', ...(isOptional ? {} : { required: true }), schema }
}

function parameterItem({ name, in: place, type }: Parameter, kind: GroupVersionKind | undefined): Definition {
  const description = describeParameter(name, place, kind?.kind)
  return { uniqueItems: true, type, description, name, in: place, ...(place === 'path' ? { required: true } : {}) }
}
