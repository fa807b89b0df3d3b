/** AdmissionReview: what a webhook is asked, and what its answer says. */
import type { AdmissionResponse } from '#apis/admission/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go-text.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import type { Decoded } from '#meta/codec/object.ts'
import { apiVersionOf, type GroupVersionKind } from '#meta/kind.ts'
import type { Status } from '#meta/status.ts'

import type { Form, Shown } from '../matching/forms.ts'
import { optionsOf, requestHead } from '../matching/request.ts'

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
