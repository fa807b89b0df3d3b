/** View: a resource as one of its served versions shows it; what every handler is handed. */
import {
  CUSTOM_RESOURCE_MEDIA_TYPES,
  isRefusal,
  MEDIA_TYPES,
  type Negotiated,
  negotiateAccept,
  type Offer,
  type Refusal,
} from '#meta/codec/negotiate.ts'
import { failure } from '#meta/status-errors.ts'

import { type Form, formIn } from '../answers/form.ts'
import type { Representation } from '../answers/representation.ts'
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

/** The form of an answer about the resource, or the refusal as an error. */
export function formFor(call: Call, { resource }: Pick<View, 'resource'>, endpoint: 'object' | 'list'): Form {
  return formOf(call, resource.custom === undefined ? endpoint : 'custom')
}

/** What can be answered about the resource. */
export function offerOf({ resource }: Pick<View, 'resource'>, endpoint: 'object' | 'list'): Offer {
  if (resource.custom === undefined) return { endpoint, mediaTypes: MEDIA_TYPES, tables: true }
  return { endpoint: 'custom', mediaTypes: CUSTOM_RESOURCE_MEDIA_TYPES, tables: true }
}

/** The form of the answer, or the refusal as an error. */
export function formOf(call: Call, endpoint: Offer['endpoint'], tables = true): Form {
  const negotiated = accepted(negotiate(call.header('accept'), endpoint, tables))
  return formIn(negotiated, call.query.get('pretty') ?? '', call.header('user-agent'))
}

/** Clients say the same all the time. Bounded, for those that do not. */
const outcomes = new Map<string, Negotiated | Refusal>()
const MAX_OUTCOMES = 200
const MAX_ACCEPT_LENGTH = 500

function negotiate(accept: string, endpoint: Offer['endpoint'], tables: boolean): Negotiated | Refusal {
  const question = `${endpoint} ${tables} ${accept}`
  const known = outcomes.get(question)
  if (known !== undefined) return known
  const mediaTypes = endpoint === 'custom' ? CUSTOM_RESOURCE_MEDIA_TYPES : MEDIA_TYPES
  const outcome = negotiateAccept(accept, { endpoint, mediaTypes, tables })
  if (outcomes.size >= MAX_OUTCOMES) outcomes.clear()
  if (accept.length <= MAX_ACCEPT_LENGTH) outcomes.set(question, outcome)
  return outcome
}

export function accepted(outcome: Negotiated | Refusal): Negotiated {
  if (isRefusal(outcome)) throw failure(outcome)
  return outcome
}
