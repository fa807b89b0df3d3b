/** OpenAPI v2: one document for everything, in JSON or in the protobuf form most Go clients ask for. */
import { createHash } from 'node:crypto'

import type { Kind, ServedGroup } from '#apis/kinds.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { StructSchema } from '#meta/schema.ts'

import type { Answer, Call } from '../call.ts'
import { type Definition, Definitions, nameOf, V2 } from './definitions.ts'
import { describeDefinition } from './descriptions.ts'
import { type ApiPath, type Operation, type Parameter, pathsOf } from './operations.ts'

const PROTOBUF_ASKED = /application\/com\.github\.proto-openapi\.spec\.v2@v1\.0\+protobuf/
const PROTOBUF_ANSWERED = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

export interface OpenApiV2Options {
  readonly groups: () => readonly ServedGroup[]
  readonly schemaFor: (gvk: GroupVersionKind) => StructSchema | undefined
  readonly version: string
}

interface Made {
  /** Which kinds it was made of: made anew when they change. */
  readonly of: string
  readonly swagger: Definition
  readonly text: string
  readonly etag: string
  protobuf: Buffer | undefined
}

/** Answers `/openapi/v2`; undefined for all other paths. */
export function createOpenApiV2(options: OpenApiV2Options): (call: Call) => Promise<Answer> | Answer | undefined {
  let made: Made | undefined
  return (call) => {
    if (call.info.path !== '/openapi/v2') return undefined
    const kinds = options.groups().flatMap(({ versions }) => versions.flatMap((version) => version.kinds))
    const of = kinds.map(({ group, version, plural }) => `${group}/${version}/${plural}`).join(' ')
    made = made?.of === of ? made : make(options, kinds, of)
    return answer(call, made)
  }
}

async function answer(call: Call, made: Made): Promise<Answer> {
  const protobuf = PROTOBUF_ASKED.test(call.header('accept'))
  const contentType = protobuf ? PROTOBUF_ANSWERED : 'application/json'
  const headers = { Etag: made.etag, Vary: 'Accept-Encoding, Accept' }
  if (call.header('if-none-match') === made.etag) return { status: 304, contentType, body: '', headers }
  if (!protobuf) return { status: 200, contentType, body: Buffer.from(made.text), headers }
  const { encodeOpenApiV2 } = await import('./v2-protobuf.ts')
  made.protobuf ??= encodeOpenApiV2(made.swagger)
  return { status: 200, contentType, body: made.protobuf, headers }
}

function make({ schemaFor, version }: OpenApiV2Options, kinds: readonly Kind[], of: string): Made {
  const swagger = buildDocument(kinds, schemaFor, version)
  const text = encodeJson(swagger)
  const etag = `"${createHash('sha512').update(text).digest('hex').toUpperCase()}"`
  return { of, swagger, text, etag, protobuf: undefined }
}

const PATCH_NAME = 'io.k8s.apimachinery.pkg.apis.meta.v1.Patch'

function buildDocument(kinds: readonly Kind[], schemaFor: OpenApiV2Options['schemaFor'], version: string): Definition {
  const named = groupVersionKinds(kinds, schemaFor)
  const definitions = new Definitions(V2, describeDefinition, (name) => named.get(name) ?? [])
  const refOf = (gvk: GroupVersionKind): Definition => {
    const schema = schemaFor(gvk)
    return schema === undefined ? { type: 'object' } : definitions.ref(schema)
  }
  const paths = Object.fromEntries(pathsOf(kinds).map((path) => [path.path, pathItem(path, refOf)]))
  definitions.found.set(PATCH_NAME, { type: 'object' })
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version },
    paths,
    definitions: Object.fromEntries([...definitions.found].sort(([a], [b]) => (a < b ? -1 : 1))),
    securityDefinitions: { BearerToken: { type: 'apiKey', name: 'authorization', in: 'header' } },
  }
}

function groupVersionKinds(
  kinds: readonly Kind[],
  schemaFor: OpenApiV2Options['schemaFor'],
): Map<string, GroupVersionKind[]> {
  const found = new Map<string, GroupVersionKind[]>()
  for (const kind of kinds) {
    for (const name of [kind.kind, kind.listKind]) {
      const gvk = { group: kind.group, kind: name, version: kind.version }
      const schema = schemaFor(gvk)
      if (schema !== undefined) found.set(nameOf(schema), [gvk])
    }
  }
  return found
}

function pathItem({ parameters, operations }: ApiPath, refOf: (gvk: GroupVersionKind) => Definition): Definition {
  const methods = Object.fromEntries(operations.map((operation) => [operation.method, operationItem(operation, refOf)]))
  return { ...methods, parameters: parameters.map(parameterItem) }
}

const PRODUCES = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']
const STREAMS = ['application/json;stream=watch', 'application/vnd.kubernetes.protobuf;stream=watch']
const PATCHES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

function operationItem(operation: Operation, refOf: (gvk: GroupVersionKind) => Definition): Definition {
  const { id, action, kind, parameters, body, answer: answered, created } = operation
  const ok = { description: 'OK', schema: refOf(answered) }
  return {
    consumes: body === 'patch' ? PATCHES : ['*/*'],
    produces: action === 'list' ? [...PRODUCES, ...STREAMS] : PRODUCES,
    schemes: ['https'],
    operationId: id,
    parameters: [...(body === undefined ? [] : [bodyItem(body, refOf)]), ...parameters.map(parameterItem)],
    responses: {
      '200': ok,
      ...(created ? { '201': { ...ok, description: 'Created' } } : {}),
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group: kind.group, kind: kind.kind, version: kind.version },
  }
}

function bodyItem(body: GroupVersionKind | 'patch', refOf: (gvk: GroupVersionKind) => Definition): Definition {
  const schema = body === 'patch' ? { $ref: V2.refPrefix + PATCH_NAME } : refOf(body)
  return { name: 'body', in: 'body', ...(body === 'patch' ? { required: true } : {}), schema }
}

function parameterItem({ name, in: place, type }: Parameter): Definition {
  return { name, in: place, type, uniqueItems: true, ...(place === 'path' ? { required: true } : {}) }
}
