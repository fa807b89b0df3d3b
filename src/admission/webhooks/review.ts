/** Encodes the AdmissionReview for a webhook and decodes the response. */
import type { AdmissionResponse } from '#apis/admission/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { DecodedObject } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { Status } from '#meta/status.ts'

import type { Form, Shown } from '../matching/forms.ts'
import { optionsOf, requestHead } from '../matching/request.ts'

const GROUP = 'admission.k8s.io'
const KIND = 'AdmissionReview'

/** The first version that both sides support. */
export function reviewKind(versions: readonly string[]): GroupVersionKind | undefined {
  const version = versions.find((one) => one === 'v1' || one === 'v1beta1')
  return version === undefined ? undefined : { group: GROUP, version, kind: KIND }
}

/** The JSON of a review, its fields in upstream's order. */
export function reviewText(kind: GroupVersionKind, uid: string, form: Form, input: ReviewInput): string {
  const head = encodeJson({ uid, ...requestHead(form, input.attributes) }).slice(0, -1)
  const { object, oldObject, options } = input.texts
  const tail = `"object":${object},"oldObject":${oldObject},"dryRun":${input.attributes.dryRun},"options":${options}`
  return `{"kind":"${KIND}","apiVersion":"${apiVersionOf(kind)}","request":${head},${tail}}}\n`
}

/** A request in one form. Its parts are encoded once for all webhooks. */
export interface ReviewInput {
  readonly attributes: Attributes
  readonly shown: Shown
  readonly texts: { readonly object: string; readonly oldObject: string; readonly options: string }
}

export function reviewInputOf(attributes: Attributes, shown: Shown): ReviewInput {
  const { object, oldObject } = shown
  const texts = {
    object: object === undefined ? 'null' : encodeJson(object),
    oldObject: oldObject === undefined ? 'null' : encodeJson(oldObject),
    options: encodeJson(optionsOf(attributes)),
  }
  return { attributes, shown, texts }
}

/** The content of a response. */
export interface Response {
  readonly allowed: boolean
  readonly status: Partial<Status> | undefined
  /** The bytes of a JSON patch; undefined if there is none. */
  readonly patch: Buffer | undefined
  readonly patchType: string
  readonly warnings: readonly string[]
  readonly auditAnnotations: Readonly<Record<string, string>>
}

/** Parses the response to the review of that uid. Throws Error with upstream's text for an invalid one. */
export function readResponse({ gvk, claimed, object }: DecodedObject, uid: string, isMutating: boolean): Response {
  const response = object['response'] as AdmissionResponse | undefined
  if (response === undefined) throw new Error('webhook response was absent')
  const { allowed, status, warnings = [], auditAnnotations = {}, patch = '' } = response
  const isStrict = gvk.version === 'v1'
  if (isStrict) checkResponse(response, claimed, uid, isMutating)
  const bytes = isMutating && patch !== '' ? Buffer.from(patch, 'base64') : undefined
  // v1beta1 never checked the patch type.
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
