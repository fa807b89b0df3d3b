/** Parses the response of a webhook: a review, or an error with the text of upstream's client. */
import type { HttpResponse } from '#lib/http/response.ts'
import { isJsonObject } from '#lib/json/value.ts'
import { type DecodedObject, decodeObject } from '#meta/codec/object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { genericError } from '#meta/status-errors.ts'
import { type Status, StatusError } from '#meta/status.ts'

import { BUILT_IN } from '../registry/shapes.ts'

/** Upstream's name of the type scheme of webhook responses. */
const SCHEME = 'pkg/runtime/scheme.go:111'

/** Reviews are JSON in practice; upstream also accepts YAML, so short bodies may be YAML. */
const MAX_YAML_CHARACTERS = 64 << 10

/** The review of a response. Throws CodecError or an Error with upstream's text. */
export function readReview({ status, headers }: HttpResponse, text: string, review: GroupVersionKind): DecodedObject {
  if (text === '') {
    const contentType = headers['content-type'] ?? 'application/json'
    throw new Error(`0-length response with status code: ${status} and content type: ${contentType}`)
  }
  const isJson = /^\s*\{/.test(text) || text.length > MAX_YAML_CHARACTERS
  const decoded = decodeObject(text, isJson ? 'application/json' : 'application/yaml', {
    schemaFor: (gvk) => (isKnown(gvk, review) ? BUILT_IN.schemaFor(gvk) : undefined),
    defaultKind: review,
    scheme: SCHEME,
  })
  const { version, kind } = decoded.gvk
  if (version === review.version && kind === review.kind) return decoded
  throw new Error(`converting (${version}.${kind}) to (${review.version}.${review.kind}): unknown conversion`)
}

function isKnown({ group, version, kind }: GroupVersionKind, review: GroupVersionKind): boolean {
  return group === '' ? version === 'v1' && kind === 'Status' : group === review.group && kind === review.kind
}

/** The maximum length of the body in an error. */
const MAX_TEXT = 2048

/** The error of an unsuccessful response: the Status in its body, or upstream's text for its code. */
export function answeredFailure({ status: code, headers }: HttpResponse, text: string): StatusError {
  const bodyStatus = statusIn(text)
  if (bodyStatus !== undefined) return new StatusError(bodyStatus)
  const contentType = headers['content-type'] ?? ''
  const message = contentType === '' || contentType.startsWith('text/') ? text.slice(0, MAX_TEXT).trim() : 'unknown'
  return genericError({ code, method: 'POST', serverMessage: message })
}

function statusIn(text: string): Status | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    const { gvk, object } = decodeObject(text, 'application/json', {
      schemaFor: BUILT_IN.schemaFor,
      defaultKind: { group: '', version: 'v1', kind: 'Status' },
    })
    const isFailure = gvk.kind === 'Status' && isJsonObject(object) && object['status'] === 'Failure'
    return isFailure ? (object as unknown as Status) : undefined
  } catch {
    return undefined
  }
}
