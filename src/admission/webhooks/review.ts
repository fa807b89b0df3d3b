/** AdmissionReview: what a webhook is asked, and what its answer says. */
import type { AdmissionResponse } from '#apis/admission/v1.ts'
import { Namespaces } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { BUILT_IN } from '#apiserver/registry/shapes.ts'
import { goQuote } from '#lib/go-text.ts'
import { decodeValue } from '#meta/codec/decode.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { Decoded } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { Status } from '#meta/status.ts'

import type { Form, Shown } from '../matching/forms.ts'
import { namespaceOf, requestedForm } from '../matching/matcher.ts'

const GROUP = 'admission.k8s.io'
const KIND = 'AdmissionReview'

/** The first version that both sides know. */
export function reviewKind(versions: readonly string[]): GroupVersionKind | undefined {
  const version = versions.find((one) => one === 'v1' || one === 'v1beta1')
  return version === undefined ? undefined : { group: GROUP, version, kind: KIND }
}

/** The JSON of a review, its fields in upstream's order. */
export function reviewText(kind: GroupVersionKind, uid: string, form: Form, asked: Asked): string {
  const head = encodeJson({ uid, ...requestHead(form, asked.attributes) }).slice(0, -1)
  const { object, oldObject, options } = asked.texts
  const tail = `"object":${object},"oldObject":${oldObject},"dryRun":${asked.attributes.dryRun},"options":${options}`
  return `{"kind":"${KIND}","apiVersion":"${apiVersionOf(kind)}","request":${head},${tail}}}\n`
}

/** A request in one of its forms. Its parts are made text once, for all webhooks that are asked about it. */
export interface Asked {
  readonly attributes: Attributes
  readonly shown: Shown
  readonly texts: { readonly object: string; readonly oldObject: string; readonly options: string }
}

export function askedOf(attributes: Attributes, shown: Shown): Asked {
  const { object, oldObject } = shown
  const texts = {
    object: object === undefined ? 'null' : encodeJson(object),
    oldObject: oldObject === undefined ? 'null' : encodeJson(oldObject),
    options: encodeJson(optionsOf(attributes)),
  }
  return { attributes, shown, texts }
}

function requestHead({ resource, kind }: Form, attributes: Attributes): object {
  const { subresource, name, operation, user } = attributes
  const requested = requestedForm(attributes)
  const namespace = namespaceOf(attributes)
  const { group, version } = kind
  return {
    kind: { group, version, kind: kind.kind },
    resource: { group: resource.group, version: resource.version, resource: resource.resource },
    ...(subresource !== '' && { subResource: subresource }),
    requestKind: requested.kind,
    requestResource: requested.resource,
    ...(subresource !== '' && { requestSubResource: subresource }),
    ...(name !== '' && { name }),
    ...(namespace !== '' && { namespace }),
    operation,
    userInfo: {
      ...(user.name !== '' && { username: user.name }),
      ...(user.uid !== '' && { uid: user.uid }),
      ...(user.groups.length > 0 && { groups: user.groups }),
      ...(Object.keys(user.extra).length > 0 && { extra: user.extra }),
    },
  }
}

const OPTIONS = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' } as const

/** As upstream shows them, whatever the verb: a patch is an update. */
export function optionsOf({ operation, options, kind, oldObject }: Attributes): object | null {
  if (operation === 'CONNECT') return null
  const gvk = { group: 'meta.k8s.io', version: 'v1', kind: OPTIONS[operation] }
  const schema = BUILT_IN.schemaFor(gvk)
  // Upstream's rules for Namespaces make sure of which one they delete.
  const uid =
    operation === 'DELETE' && kind.group === '' && kind.plural === Namespaces.plural && oldObject?.metadata.uid
  const own = uid ? { ...options, preconditions: { uid, ...(options['preconditions'] as object) } } : { ...options }
  const known = schema === undefined ? own : (decodeValue(schema, own, 'Ignore', { offences: [] }) as object)
  return { kind: gvk.kind, apiVersion: 'meta.k8s.io/v1', ...withoutKind(known) }
}

function withoutKind(options: object): object {
  const { kind: _, apiVersion: __, ...rest } = options as Record<string, unknown>
  return rest
}

/** What an answer says. */
export interface Response {
  readonly allowed: boolean
  readonly status: Partial<Status> | undefined
  /** Bytes of a JSON patch; undefined when there is none. */
  readonly patch: Buffer | undefined
  readonly patchType: string
  readonly warnings: readonly string[]
  readonly auditAnnotations: Readonly<Record<string, string>>
}

/** Reads the answer to the review of that uid. Throws Error with upstream's words for one that is none. */
export function readResponse({ gvk, claimed, object }: Decoded, uid: string, isMutating: boolean): Response {
  const response = object['response'] as AdmissionResponse | undefined
  if (response === undefined) throw new Error('webhook response was absent')
  const { allowed, status, warnings = [], auditAnnotations = {}, patch = '' } = response
  const isStrict = gvk.version === 'v1'
  if (isStrict) checkResponse(response, claimed, uid, isMutating)
  const bytes = isMutating && patch !== '' ? Buffer.from(patch, 'base64') : undefined
  // Nobody ever looked at the type in v1beta1.
  const patchType = isStrict ? (response.patchType ?? '') : 'JSONPatch'
  return { allowed, status, warnings, auditAnnotations, patch: bytes, patchType }
}

function checkResponse(response: AdmissionResponse, claimed: GroupVersionKind, uid: string, isMutating: boolean): void {
  const { patch = '', patchType } = response
  if (response.uid !== uid) throw new Error(`expected response.uid=${goQuote(uid)}, got ${goQuote(response.uid ?? '')}`)
  const { group, version, kind } = claimed
  if (group !== GROUP || version !== 'v1' || kind !== KIND) {
    throw new Error(`expected webhook response of ${GROUP}/v1, Kind=${KIND}, got ${group}/${version}, Kind=${kind}`)
  }
  if (!isMutating) {
    if (patch !== '') throw new Error('validating webhook may not return response.patch')
    if (patchType !== undefined) throw new Error('validating webhook may not return response.patchType')
    return
  }
  if (patch !== '' && patchType === undefined)
    throw new Error('webhook returned response.patch but not response.patchType')
  if (patch === '' && patchType !== undefined)
    throw new Error('webhook returned response.patchType but not response.patch')
  if (patchType === '') throw new Error('webhook returned invalid response.patchType of ""')
}
