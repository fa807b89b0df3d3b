/** View: a resource in one of its served versions. Every handler receives one. */
import type { Call } from '#component/requests/call.ts'
import { type Form, formIn } from '#component/requests/response-form.ts'
import {
  CUSTOM_RESOURCE_MEDIA_TYPES,
  isRefusal,
  MEDIA_TYPES,
  type Negotiation,
  negotiateAccept,
  type Offer,
  type Refusal,
} from '#meta/codec/negotiate.ts'
import { failure } from '#meta/status-errors.ts'

import type { Representation } from '../registry/representation.ts'
import type { Resource } from '../registry/resource.ts'
import type { Services } from '../registry/services.ts'
import type { Store } from '../registry/store.ts'

export interface View {
  readonly resource: Resource
  readonly store: Store
  /** For writes through `scale`, if the kind has it. */
  readonly scaleStore?: Store
  readonly representation: Representation
  readonly services: Services
}

/** The response form, or the rejection as an error. */
export function formFor(call: Call, { resource }: Pick<View, 'resource'>, endpoint: 'object' | 'list'): Form {
  return formOf(call, resource.custom === undefined ? endpoint : 'custom')
}

/** The supported response forms of the resource. */
export function offerOf({ resource }: Pick<View, 'resource'>, endpoint: 'object' | 'list'): Offer {
  if (resource.custom === undefined) return { endpoint, mediaTypes: MEDIA_TYPES, tables: true }
  return { endpoint: 'custom', mediaTypes: CUSTOM_RESOURCE_MEDIA_TYPES, tables: true }
}

/** The form of the answer, or the refusal as an error. */
export function formOf(call: Call, endpoint: Offer['endpoint'], tables = true): Form {
  const negotiated = accepted(negotiate(call.header('accept'), endpoint, tables))
  return formIn(negotiated, call.query.get('pretty') ?? '', call.header('user-agent'))
}

/** A bounded cache, because clients repeat the same Accept header. */
const outcomes = new Map<string, Negotiation | Refusal>()
const MAX_OUTCOMES = 200
const MAX_ACCEPT_LENGTH = 500

function negotiate(accept: string, endpoint: Offer['endpoint'], tables: boolean): Negotiation | Refusal {
  const question = `${endpoint} ${tables} ${accept}`
  const known = outcomes.get(question)
  if (known !== undefined) return known
  const mediaTypes = endpoint === 'custom' ? CUSTOM_RESOURCE_MEDIA_TYPES : MEDIA_TYPES
  const outcome = negotiateAccept(accept, { endpoint, mediaTypes, tables })
  if (outcomes.size >= MAX_OUTCOMES) outcomes.clear()
  if (accept.length <= MAX_ACCEPT_LENGTH) outcomes.set(question, outcome)
  return outcome
}

export function accepted(outcome: Negotiation | Refusal): Negotiation {
  if (isRefusal(outcome)) throw failure(outcome)
  return outcome
}
