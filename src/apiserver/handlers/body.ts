/** Decodes the body of a write, checks it against the path and sets defaults. */
import type { Call } from '#component/requests/call.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { runInSlices, yieldToEventLoop } from '#lib/time-slicing.ts'
import { YamlError } from '#lib/yaml/error.ts'
import type { ReadYaml } from '#lib/yaml/reader.ts'
import type { FieldValidation } from '#meta/codec/decode.ts'
import { CodecError } from '#meta/codec/error.ts'
import {
  CUSTOM_RESOURCE_MEDIA_TYPES,
  isRefusal,
  MEDIA_TYPES,
  type MediaType,
  negotiateContentType,
} from '#meta/codec/negotiate.ts'
import {
  badRequestText,
  decodeObject,
  type Document,
  parseJsonDocument,
  yamlDocument,
  yamlFailure,
} from '#meta/codec/object.ts'
import { type GroupVersionKind, internalTypeOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import {
  badRequestError,
  failure,
  invalidError,
  requestEntityTooLargeError,
  tooManyRequestsError,
} from '#meta/status-errors.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import type { CustomRules } from '../registry/resource.ts'
import type { Services, WriteRequest } from '../registry/services.ts'
import { BUILT_IN, type Shapes } from '../registry/shapes.ts'
import { isLarge } from '../registry/sizes.ts'
import { applyDefaults } from '../registry/write-rules.ts'
import { dropRepeatedOwners } from './owner-references.ts'
import type { View } from './view.ts'

/**
 * The decoded body, in the version of the request. `kind` is the body's, which differs from the resource's for
 * subresources.
 */
export async function decodeBody(
  call: Call,
  view: View,
  kind: GroupVersionKind,
  fieldValidation: string | undefined,
): Promise<KubeObject> {
  const isOwn = kind === view.representation.kind
  const custom = isOwn ? view.resource.custom : undefined
  const wanted = { kind, fieldValidation, shapes: view.resource.shapes, custom }
  const object = await decodeNoting(call, view.services, wanted, (copy) => {
    if (isOwn) applyDefaults(view.resource, kind, copy, view.services)
  })
  dropRepeatedOwners(object.metadata, (text) => call.warn(text))
  return object
}

/** The same without a stored resource. */
export function decodeReviewBody(
  call: Call,
  services: Services,
  kind: GroupVersionKind,
  fieldValidation: string | undefined,
): Promise<KubeObject> {
  return decodeNoting(call, services, { kind, fieldValidation, shapes: BUILT_IN })
}

interface Wanted {
  readonly kind: GroupVersionKind
  readonly fieldValidation: string | undefined
  readonly shapes: Shapes
  readonly custom?: CustomRules | undefined
}

async function decodeNoting(
  call: Call,
  services: Services,
  { kind, fieldValidation, shapes, custom }: Wanted,
  complete?: (copy: KubeObject) => void,
): Promise<KubeObject> {
  const offered = custom === undefined ? MEDIA_TYPES : CUSTOM_RESOURCE_MEDIA_TYPES
  const mediaType = negotiateContentType(call.header('content-type'), offered)
  if (isRefusal(mediaType)) throw failure(mediaType)
  const bytes = await call.body()
  const validation = validationOf(fieldValidation)
  try {
    const isPlain = mediaType !== 'application/yaml' && !isLarge({ bodyBytes: bytes.length })
    const document = isPlain ? undefined : await readDocument(call, services, bytes, mediaType)
    const { object, offences } = decodeObject(bytes, mediaType, {
      ...(document !== undefined && { document }),
      schemaFor: shapes.schemaFor,
      validation,
      ...(custom === undefined
        ? { defaultKind: kind }
        : { prune: (found: JsonObject) => custom.prune(found as unknown as KubeObject) }),
      expected: { ...kind, internalType: internalTypeOf(kind) },
    })
    if (object['kind'] !== kind.kind) throw wrongKind(kind, object as unknown as KubeObject)
    for (const offence of offences) call.warn(offence)
    call.audit?.body(object as unknown as KubeObject, complete)
    return object as unknown as KubeObject
  } catch (cause) {
    throw codecFailure(cause, kind, bytes)
  }
}

/** For a large body: yields before it is decoded. Undefined if it is read and decoded at once. */
async function readDocument(
  call: Call,
  services: Services,
  bytes: Buffer,
  mediaType: MediaType,
): Promise<Document | undefined> {
  if (mediaType === 'application/yaml') return yamlDocument(await readYaml(call, services, bytes))
  if (mediaType !== 'application/json' || !isLarge({ bodyBytes: bytes.length })) return undefined
  const document = await runInSlices(parseJsonDocument(bytes), services.clock)
  await yieldToEventLoop()
  return document
}

/** For a custom resource, which is decoded whatever kind it declares. */
function wrongKind({ group, kind: wanted }: GroupVersionKind, { kind = '', metadata }: KubeObject): Error {
  return invalidError({ group, kind }, metadata.name ?? '', [fieldPath('kind').invalid(kind, `must be ${wanted}`)])
}

/** Parses large YAML in a worker. Throws CodecError, or 429 if there are too many. */
export async function readYaml(call: Call, { yaml }: Services, bytes: Buffer): Promise<ReadYaml> {
  try {
    return await yaml.read(bytes, call.signal)
  } catch (cause) {
    if (cause instanceof YamlError && cause.code === 'busy') throw tooManyRequestsError(cause.message, 1)
    throw yamlFailure(cause)
  }
}

function codecFailure(cause: unknown, kind: GroupVersionKind, bytes: Buffer): unknown {
  if (!(cause instanceof CodecError)) return cause
  if (cause.code === 'limit') return requestEntityTooLargeError(cause.message)
  return badRequestError(badRequestText(cause, kind.kind, bytes))
}

export function validationOf(text: string | undefined): FieldValidation {
  return text === 'Strict' || text === 'Ignore' ? text : 'Warn'
}

/** The body's namespace must equal the path's; an empty one is set. For cluster-scoped kinds it is dropped. */
export function settleNamespace(object: KubeObject, { info }: Call, namespaced: boolean): void {
  const { metadata } = object
  const own = metadata.namespace ?? ''
  if (!namespaced) {
    delete metadata.namespace
    return
  }
  if (own !== '' && own !== info.namespace) {
    throw badRequestError('the namespace of the provided object does not match the namespace sent on the request')
  }
  metadata.namespace = info.namespace
}

/** A kind, and whether it is namespaced. */
type BodyKind = GroupVersionKind & { readonly namespaced: boolean }

export interface WriteOptions {
  readonly dryRun?: readonly string[]
  readonly fieldManager?: string
}

/** The request in the form of the registry; `kind` is that of its body. */
export function writeRequestOf(call: Call, kind: BodyKind, options: WriteOptions): WriteRequest {
  return new CallRequest(call, kind, options)
}

/** The signal is created on demand: most writes never need it. */
class CallRequest implements WriteRequest {
  readonly gvk: GroupVersionKind
  readonly addressed: NonNullable<WriteRequest['addressed']>
  readonly namespace: string
  readonly subresource: string
  readonly user: Call['user']
  readonly verb: string
  readonly dryRun: boolean
  readonly manager: string
  readonly options: WriteRequest['options']
  readonly annotate: WriteRequest['annotate']
  readonly deadlineMs: number | undefined
  readonly bodyBytes: number | undefined
  readonly auditId: string
  private readonly call: Call

  constructor(call: Call, kind: BodyKind, options: WriteOptions) {
    const { info, audit } = call
    this.gvk = kind
    this.addressed = { group: info.group, version: info.version, resource: info.resource }
    this.namespace = kind.namespaced ? info.namespace : ''
    this.subresource = info.subresource
    this.user = call.user
    this.verb = info.verb
    this.dryRun = (options.dryRun ?? []).length > 0
    this.manager = managerOf(call, options)
    this.options = { ...options }
    this.annotate = audit && ((key, value, from) => audit.annotate(key, value, from))
    this.deadlineMs = call.deadlineMs
    this.bodyBytes = call.bodyBytes
    this.auditId = call.auditId
    this.call = call
  }

  warn(text: string): void {
    this.call.warn(text)
  }

  get signal(): AbortSignal {
    return this.call.signal
  }
}

/** The same request with some members replaced. */
export function otherRequest(request: WriteRequest, changes: Partial<WriteRequest>): WriteRequest {
  return Object.assign(Object.create(request), changes) as WriteRequest
}

/** Caches the last value, because the same clients write often. */
let lastAgent = ''
let lastManager = ''

/** The default field manager is the program's name. */
export function managerOf(call: Call, { fieldManager }: WriteOptions): string {
  if (fieldManager !== undefined) return fieldManager
  const agent = call.header('user-agent')
  if (agent === lastAgent) return lastManager
  const slash = agent.indexOf('/')
  const name = slash < 0 ? agent : agent.slice(0, slash)
  lastAgent = agent
  return (lastManager = name.replaceAll(/\p{Cc}/gu, '').slice(0, 128))
}
