/** View: a resource as one of its served versions shows it; what every handler is handed. */
import {
  isRefusal,
  MEDIA_TYPES,
  type Negotiated,
  negotiateAccept,
  type Offer,
  prefersPretty,
  type Refusal,
} from '#meta/codec/negotiate.ts'
import { failure } from '#meta/status-errors.ts'

import type { Form, Representation } from '../answers/representation.ts'
import type { Call } from '../call.ts'
import type { Resource } from '../registry/resource.ts'
import type { Services } from '../registry/services.ts'
import type { Store } from '../registry/store.ts'

export interface View {
  readonly resource: Resource
  readonly store: Store
  /** For writes through `scale`, where the kind has it. */
  readonly scaleStore?: Store
  readonly representation: Representation
  readonly services: Services
}

/** The form of the answer, or the refusal as an error. */
export function formOf(call: Call, endpoint: Offer['endpoint'], tables = true): Form {
  const negotiated = accepted(negotiate(call.header('accept'), endpoint, tables))
  const pretty = negotiated.pretty || prefersPretty(call.query.get('pretty') ?? '', call.header('user-agent'))
  return { negotiated, pretty }
}

/** Clients say the same all the time. Bounded, for those that do not. */
const outcomes = new Map<string, Negotiated | Refusal>()
const MAX_OUTCOMES = 200
const MAX_ACCEPT_LENGTH = 500

function negotiate(accept: string, endpoint: Offer['endpoint'], tables: boolean): Negotiated | Refusal {
  const question = `${endpoint} ${tables} ${accept}`
  const known = outcomes.get(question)
  if (known !== undefined) return known
  const outcome = negotiateAccept(accept, { endpoint, mediaTypes: MEDIA_TYPES, tables })
  if (outcomes.size >= MAX_OUTCOMES) outcomes.clear()
  if (accept.length <= MAX_ACCEPT_LENGTH) outcomes.set(question, outcome)
  return outcome
}

export function accepted(outcome: Negotiated | Refusal): Negotiated {
  if (isRefusal(outcome)) throw failure(outcome)
  return outcome
}
