/** What a webhook answered: a review, or a failure in the words of upstream's client. */
import type { HttpResponse } from '#lib/http/response.ts'
import { isJsonObject } from '#lib/json-value.ts'
import { type Decoded, decodeObject } from '#meta/codec/object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { genericError } from '#meta/status-errors.ts'
import { type Status, StatusError } from '#meta/status.ts'

import { BUILT_IN } from '../registry/shapes.ts'

/** What upstream's client calls the table of types that webhooks answer with. */
const SCHEME = 'pkg/runtime/scheme.go:111'

/** Reviews come as JSON, as do all that anybody ever wrote; upstream reads YAML as well, so short ones may be that. */
const MAX_YAML_CHARACTERS = 64 << 10

/** The review of an answer. Throws CodecError or an Error with upstream's words when it is none. */
export function readReview({ status, headers }: HttpResponse, text: string, review: GroupVersionKind): Decoded {
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

/** Of the body, as much as an error shows. */
const MAX_TEXT = 2048

/** The failure of an answer that is not a success: the Status in its body, or what upstream's client makes of its code. */
export function answeredFailure({ status: code, headers }: HttpResponse, text: string): StatusError {
  const told = statusIn(text)
  if (told !== undefined) return new StatusError(told)
  const contentType = headers['content-type'] ?? ''
  const said = contentType === '' || contentType.startsWith('text/') ? text.slice(0, MAX_TEXT).trim() : 'unknown'
  return genericError({ code, method: 'POST', serverMessage: said })
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
