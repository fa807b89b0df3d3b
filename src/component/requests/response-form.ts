/** The form of one response: media type, version and indentation. Only JSON is ever indented. */
import { type Negotiation, prefersPretty } from '#meta/codec/negotiate.ts'

export interface Form {
  readonly negotiated: Negotiation
  /** Indented JSON for people. */
  readonly pretty: boolean
}

/** `pretty`: the parameter of the request, '' when it is missing. */
export function formIn(negotiated: Negotiation, pretty: string, userAgent: string): Form {
  const isJson = negotiated.mediaType === 'application/json'
  return { negotiated, pretty: isJson && (negotiated.pretty || prefersPretty(pretty, userAgent)) }
}
