/** What a webhook answered: a review, or a failure in the words of upstream's client. */
import { goQuote } from '#lib/go-text.ts'
import type { HttpResponse } from '#lib/http/response.ts'
import { isJsonObject } from '#lib/json-value.ts'
import { type Decoded, decodeObject } from '#meta/codec/object.ts'
import type { GroupVersionKind } from '#meta/kind.ts'
import { failure } from '#meta/status-errors.ts'
import { type Status, StatusError, type StatusReason } from '#meta/status.ts'

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

type Words = readonly [reason: StatusReason, message: string]

const WORDS: ReadonlyMap<number, Words> = new Map<number, Words>([
  [400, ['BadRequest', 'the server rejected our request for an unknown reason']],
  [401, ['Unauthorized', 'the server has asked for the client to provide credentials']],
  [404, ['NotFound', 'the server could not find the requested resource']],
  [405, ['MethodNotAllowed', 'the server does not allow this method on the requested resource']],
  [409, ['AlreadyExists', 'the server reported a conflict']],
  [422, ['Invalid', 'the server rejected our request due to an error in our request']],
  [429, ['TooManyRequests', 'the server has received too many requests and has asked us to try again later']],
  [503, ['ServiceUnavailable', 'the server is currently unable to handle the request']],
  [
    504,
    [
      'Timeout',
      'the server was unable to return a response in the time allotted, but may still be processing the request',
    ],
  ],
])

/** Of the body, as much as an error shows. */
const MAX_TEXT = 2048

/** The failure of an answer that is not a success: the Status in its body, or what upstream's client makes of its code. */
export function answeredFailure({ status: code, headers }: HttpResponse, text: string): StatusError {
  const told = statusIn(text)
  if (told !== undefined) return new StatusError(told)
  const contentType = headers['content-type'] ?? ''
  const said = contentType === '' || contentType.startsWith('text/') ? text.slice(0, MAX_TEXT).trim() : 'unknown'
  return failure({ code, ...wordsOf(code, said) })
}

function wordsOf(code: number, said: string): { readonly message: string; readonly reason?: StatusReason } {
  const words = WORDS.get(code)
  if (words !== undefined) return { reason: words[0], message: words[1] }
  if (code === 403) return { reason: 'Forbidden', message: said }
  if (code === 406) {
    const message = 'the server was unable to respond with a content type that the client supports'
    return { reason: 'NotAcceptable', message: said === '' || said === 'unknown' ? message : said }
  }
  if (code === 415) return { reason: 'UnsupportedMediaType', message: said }
  if (code < 500)
    return { message: `the server responded with the status code ${code} but did not return more information` }
  const message = `an error on the server (${goQuote(said)}) has prevented the request from succeeding`
  return { reason: 'InternalError', message }
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
