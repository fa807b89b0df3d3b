/**
 * Negotiates the content types of request and response bodies from headers, or rejects the request with upstream's
 * text. CBOR is rejected like an unknown type. Pure.
 */
import type { StatusDetails } from '../status.ts'
import { type AcceptClause, acceptedTypes, parseAccept } from './accept.ts'

export type MediaType = 'application/json' | 'application/yaml' | 'application/vnd.kubernetes.protobuf'

/** In upstream's order: the first is the default. */
export const MEDIA_TYPES: readonly MediaType[] = [
  'application/json',
  'application/yaml',
  'application/vnd.kubernetes.protobuf',
]

/** Custom resources have no protobuf form. */
export const CUSTOM_RESOURCE_MEDIA_TYPES: readonly MediaType[] = ['application/json', 'application/yaml']

/** YAML has no frames. */
const STREAMED: ReadonlySet<MediaType> = new Set(['application/json', 'application/vnd.kubernetes.protobuf'])

/** The target kind of an answer: `as`, `g` and `v` of a media type. */
export interface Target {
  readonly kind: string
  readonly group: string
  readonly version: string
  /**
   * The parameter `omit=managedFields`, an extension of ours: the metadata of Tables and Partial kinds is sent without
   * these fields. Upstream ignores parameters that it does not know.
   */
  readonly omitsManagedFields?: boolean
}

/** The abilities of an endpoint. */
export interface Offer {
  /** The routing of the endpoint, which changes the text of a rejection for custom resources; lists can be watched. */
  readonly endpoint: 'object' | 'list' | 'custom'
  /** The forms of the object itself. The Partial kinds always have every form of `MEDIA_TYPES`. */
  readonly mediaTypes: readonly MediaType[]
  /** True if the endpoint supports Tables. */
  readonly tables: boolean
}

export interface Negotiation {
  readonly mediaType: MediaType
  /** Absent: the object itself. */
  readonly as?: Target
  /** The client requested `stream=watch`. */
  readonly stream: boolean
  /** The media type requests indentation, see also `prefersPretty`. */
  readonly pretty: boolean
}

/** A 406 or 415, to be answered as a Status with this message. */
export interface Refusal {
  readonly code: 406 | 415
  readonly reason: 'NotAcceptable' | 'UnsupportedMediaType'
  readonly message: string
  /** Empty if upstream's router rejects before its API does. */
  readonly details?: StatusDetails
}

export function isRefusal(outcome: Negotiation | Refusal | MediaType | PatchType): outcome is Refusal {
  return typeof outcome === 'object' && 'code' in outcome
}

/** Chooses the form of an answer. An empty `accept` means a missing header. */
export function negotiateAccept(accept: string, offer: Offer): Negotiation | Refusal {
  if (accept === '') return plainJson
  const refusal = offer.endpoint === 'custom' ? undefined : refuseRoute(accept, offer)
  if (refusal !== undefined) return refusal
  return firstAcceptable(accept, (mediaType, as) => allowsTarget(offer, mediaType, as)) ?? notAcceptable(offered(offer))
}

/** The form of a Status that rejects a request. It is never rejected itself: by default it is indented JSON. */
export function negotiateStatus(accept: string): Negotiation {
  if (accept === '') return plainJson
  return firstAcceptable(accept, (_mediaType, as) => as === undefined) ?? { ...plainJson, pretty: true }
}

/** The same for a watch: rejects YAML, which has no frames. */
export function negotiateWatch(accept: string, offer: Offer): Negotiation | Refusal {
  const outcome = negotiateAccept(accept, offer)
  if (isRefusal(outcome) || STREAMED.has(outcome.mediaType)) return outcome
  return notAcceptable(streams(offered(offer)))
}

/** `/api` and `/apis`: the aggregated document if any clause requests the served version, otherwise the old one. */
export function negotiateDiscovery(accept: string): Negotiation | Refusal {
  if (accept === '') return plainJson
  const aggregated = firstAcceptable(accept, (_mediaType, as) => as !== undefined && isAggregatedDiscovery(as))
  if (aggregated !== undefined) return aggregated
  return firstAcceptable(accept, (_mediaType, as) => as === undefined) ?? notAcceptable(MEDIA_TYPES)
}

/** The Content-Type of an answer; aggregated discovery documents repeat the request. */
export function contentTypeOf({ mediaType, as }: Negotiation, options: { readonly watch?: boolean } = {}): string {
  if (options.watch === true && mediaType !== 'application/json') return `${mediaType};stream=watch`
  if (as === undefined || !isAggregatedDiscovery(as)) return mediaType
  return `${mediaType};g=${as.group};v=${as.version};as=${as.kind}`
}

/**
 * True if JSON is indented for this client: decided by the `pretty` parameter ('' if missing), or else by the
 * User-Agent.
 */
export function prefersPretty(pretty: string, userAgent: string): boolean {
  if (pretty !== '') return /^(?:1|t|T|TRUE|true|True)$/.test(pretty)
  return /^(?:curl|Wget|Mozilla\/5\.0)/.test(userAgent)
}

/** The form of the body of a POST, PUT or DELETE. An empty header means JSON. */
export function negotiateContentType(contentType: string, mediaTypes: readonly MediaType[]): MediaType | Refusal {
  if (contentType === '') return mediaTypes[0] ?? 'application/json'
  const name = parseMediaType(contentType)
  return mediaTypes.find((mediaType) => mediaType === name) ?? unknownFormat(mediaTypes)
}

export type PatchType =
  | 'application/json-patch+json'
  | 'application/merge-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/apply-patch+yaml'

const patchTypes: readonly PatchType[] = [
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]

/** The type of a PATCH body. Custom resources have no strategic merge. */
export function negotiatePatch(contentType: string, endpoint: 'builtin' | 'custom'): PatchType | Refusal {
  if (endpoint === 'custom') {
    const served = patchTypes.filter((type) => type !== 'application/strategic-merge-patch+json')
    const name = contentType.replace(/(?<=.);.*$/s, '')
    return served.find((type) => type === name) ?? unknownFormat(served)
  }
  const named = acceptedTypes(contentType)
  return (
    patchTypes.find((type) => named.includes(type)) ?? { ...unsupported('415: Unsupported Media Type'), details: {} }
  )
}

/** The error for a list requested `as=PartialObjectMetadata`; `goType` is upstream's name, `*core.PodList`. */
export function notAnObject(goType: string): Refusal {
  return refused(`you requested PartialObjectMetadata, but the requested object is a list (${goType})`)
}

/** The error for one object requested `as=PartialObjectMetadataList`. */
export function notAList(goType: string): Refusal {
  return refused(`you requested PartialObjectMetadataList, but the requested object is not a list (${goType})`)
}

const plainJson: Negotiation = { mediaType: 'application/json', stream: false, pretty: false }

/**
 * True if upstream's router has a route of a built-in kind. It compares media type names before the API negotiates,
 * without `application/*` and parameters.
 */
export function acceptsRoute(accept: string): boolean {
  const known: readonly string[] = MEDIA_TYPES
  return accept === '' || acceptedTypes(accept).some((type) => type === '*/*' || known.includes(type))
}

function refuseRoute(accept: string, offer: Offer): Refusal | undefined {
  if (acceptsRoute(accept)) return undefined
  const produced = offer.endpoint === 'list' ? [...MEDIA_TYPES, ...streams(MEDIA_TYPES)] : MEDIA_TYPES
  return { ...refused(`406: Not Acceptable\n\nAvailable representations: ${produced.join(', ')}`), details: {} }
}

type Allows = (mediaType: MediaType, as: Target | undefined) => boolean

function firstAcceptable(accept: string, allows: Allows): Negotiation | undefined {
  for (const clause of parseAccept(accept)) {
    for (const mediaType of MEDIA_TYPES) {
      const outcome = matches(clause, mediaType) ? accepts(clause, mediaType, allows) : undefined
      if (outcome !== undefined) return outcome
    }
  }
  return undefined
}

function matches({ type, subtype }: AcceptClause, mediaType: MediaType): boolean {
  if (type === '*' && subtype === '*') return true
  return type === 'application' && (subtype === '*' || mediaType === `application/${subtype}`)
}

function accepts({ params }: AcceptClause, mediaType: MediaType, allows: Allows): Negotiation | undefined {
  const stream = params.get('stream') ?? ''
  if (stream !== '' && (stream !== 'watch' || !STREAMED.has(mediaType))) return undefined
  const serverVersion = params.get('sv') ?? ''
  if (serverVersion !== '' && serverVersion !== 'v1') return undefined
  const as = targetOf(params)
  if (!allows(mediaType, as)) return undefined
  return { mediaType, ...(as && { as }), stream: stream !== '', pretty: params.get('pretty') === '1' }
}

function targetOf(params: ReadonlyMap<string, string>): Target | undefined {
  if (!params.has('as') && !params.has('g') && !params.has('v')) return undefined
  const target = { kind: params.get('as') ?? '', group: params.get('g') ?? '', version: params.get('v') ?? '' }
  return params.get('omit') === 'managedFields' ? { ...target, omitsManagedFields: true } : target
}

function allowsTarget(offer: Offer, mediaType: MediaType, as: Target | undefined): boolean {
  if (as === undefined) return offer.mediaTypes.includes(mediaType)
  if (as.group !== 'meta.k8s.io' || (as.version !== 'v1' && as.version !== 'v1beta1')) return false
  if (as.kind === 'Table') return offer.tables && mediaType !== 'application/vnd.kubernetes.protobuf'
  return as.kind === 'PartialObjectMetadata' || as.kind === 'PartialObjectMetadataList'
}

/** The types in a rejection: the serializer of custom resources lists all three, though it writes two. */
function offered(offer: Offer): readonly MediaType[] {
  return offer.endpoint === 'custom' ? MEDIA_TYPES : offer.mediaTypes
}

function streams(mediaTypes: readonly MediaType[]): string[] {
  return mediaTypes.filter((type) => STREAMED.has(type)).map((type) => `${type};stream=watch`)
}

function isAggregatedDiscovery({ kind, group, version }: Target): boolean {
  return group === 'apidiscovery.k8s.io' && version === 'v2' && kind === 'APIGroupDiscoveryList'
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const mediaTypePattern = new RegExp(
  `^(${token}(?:/${token})?)((?:\\s*;\\s*${token}=(?:${token}|"(?:[^"\\\\]|\\\\.)*"))*)\\s*;?\\s*$`,
)

/** The lower-case name of a media type with valid parameters; '' for anything else. */
function parseMediaType(text: string): string {
  // The common form.
  if (text === 'application/json' || text === 'application/vnd.kubernetes.protobuf') return text
  return mediaTypePattern.exec(text.trim())?.[1]?.toLowerCase() ?? ''
}

function notAcceptable(mediaTypes: readonly string[]): Refusal {
  return refused(`only the following media types are accepted: ${mediaTypes.join(', ')}`)
}

function refused(message: string): Refusal {
  return { code: 406, reason: 'NotAcceptable', message }
}

function unknownFormat(accepted: readonly string[]): Refusal {
  return unsupported(
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  )
}

function unsupported(message: string): Refusal {
  return { code: 415, reason: 'UnsupportedMediaType', message }
}
