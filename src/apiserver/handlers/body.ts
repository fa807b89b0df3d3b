import type { FieldValidation } from '#meta/codec/decode.ts'
/** The body of a write: decoded into canonical form, checked against what the path says, with defaults. */
import { CodecError } from '#meta/codec/error.ts'
import { isRefusal, MEDIA_TYPES, negotiateContentType } from '#meta/codec/negotiate.ts'
import { badRequestText, decodeObject } from '#meta/codec/object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { badRequestError, failure, requestEntityTooLargeError } from '#meta/status-errors.ts'

import type { Call } from '../call.ts'
import type { User } from '../registry/resource.ts'
import type { Services, WriteRequest } from '../registry/services.ts'
import type { View } from './view.ts'

/** The decoded body, in the version of the request. `kind` is the body's: another than the resource's for subresources. */
export function decodeBody(
  call: Call,
  { services }: View,
  kind: GroupVersionKind,
  fieldValidation: string | undefined,
): Promise<KubeObject> {
  return decodeReviewBody(call, services, kind, fieldValidation)
}

/** The same where there is no stored resource. */
export async function decodeReviewBody(
  call: Call,
  services: Services,
  kind: GroupVersionKind,
  fieldValidation: string | undefined,
): Promise<KubeObject> {
  const mediaType = negotiateContentType(call.header('content-type'), MEDIA_TYPES)
  if (isRefusal(mediaType)) throw failure(mediaType)
  const bytes = await call.body()
  const validation = validationOf(fieldValidation)
  try {
    const { object, offences } = decodeObject(bytes, mediaType, {
      schemaFor: services.schemaFor,
      validation,
      defaultKind: kind,
      expected: { ...kind, internalType: internalType(kind) },
    })
    for (const offence of offences) call.warn(offence)
    return object as unknown as KubeObject
  } catch (cause) {
    throw codecFailure(cause, kind, bytes)
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

/** `core.ConfigMap`: upstream's name of the version-less type, which some error texts show. */
function internalType({ group, kind }: GroupVersionKind): string {
  return `${group === '' ? 'core' : group.split('.')[0]}.${kind}`
}

/** The namespace of the body must be the path's; an empty one becomes it. */
export function settleNamespace(object: KubeObject, { info }: Call, namespaced: boolean): void {
  const { metadata } = object
  const own = metadata.namespace ?? ''
  if (!namespaced) {
    if (own !== '') throw badRequestError('namespace must not be set on cluster-scoped objects')
    delete metadata.namespace
    return
  }
  if (own !== '' && own !== info.namespace) {
    throw badRequestError('the namespace of the provided object does not match the namespace sent on the request')
  }
  metadata.namespace = info.namespace
}

export interface WriteOptions {
  readonly dryRun?: readonly string[]
  readonly fieldManager?: string
}

/** What the registry needs to know of the request. */
export function writeRequestOf(call: Call, view: View, options: WriteOptions): WriteRequest {
  const { kind } = view.representation
  const user: User = call.user
  return {
    gvk: kind,
    namespace: kind.namespaced ? call.info.namespace : '',
    subresource: call.info.subresource,
    user,
    dryRun: (options.dryRun ?? []).length > 0,
    manager: options.fieldManager ?? managerFromAgent(call.header('user-agent')),
    options: { ...options },
    warn: (text) => call.warn(text),
    signal: call.signal,
  }
}

/** A client that gives no name goes by its program's. */
function managerFromAgent(agent: string): string {
  const slash = agent.indexOf('/')
  const name = slash < 0 ? agent : agent.slice(0, slash)
  return name.replaceAll(/\p{Cc}/gu, '').slice(0, 128)
}
