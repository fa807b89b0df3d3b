/** The form of one answer: media type, version and indentation. Only JSON is ever indented. */
import { type Negotiated, prefersPretty } from '#meta/codec/negotiate.ts'

export interface Form {
  readonly negotiated: Negotiated
  /** For people: indented JSON. */
  readonly pretty: boolean
}

/** `pretty`: the parameter of the request, '' when it is missing. */
export function formIn(negotiated: Negotiated, pretty: string, userAgent: string): Form {
  const isJson = negotiated.mediaType === 'application/json'
  return { negotiated, pretty: isJson && (negotiated.pretty || prefersPretty(pretty, userAgent)) }
}
