/** Kinds that are answered and never stored: POST a question, get the same object back with the answer in it. */
import { apiVersionOf } from '#meta/kind.ts'
import { createOptionsQuery, invalidOptionsError, validateCreateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { invalidError, methodNotSupportedError } from '#meta/status-errors.ts'

import type { Answer, Call } from '../call.ts'
import { trackAnswered } from '../registry/field-tracking.ts'
import type { Review } from '../registry/resource.ts'
import type { Services } from '../registry/services.ts'
import { Representation } from '../representation.ts'
import { answerWithValue } from './answers.ts'
import { decodeReviewBody, managerOf, settleNamespace } from './body.ts'
import { formOf } from './view.ts'

/** Only the server sets these; what is sent is not looked at. */
const SYSTEM_FIELDS = [
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'selfLink',
  'uid',
] as const

export async function answerReview(call: Call, review: Review, services: Services): Promise<Answer> {
  const { kind } = review
  if (call.info.verb !== 'create')
    throw methodNotSupportedError({ group: kind.group, resource: kind.plural }, call.info.verb)
  const form = formOf(call, 'object', false)
  const options = decodeQuery(createOptionsQuery, call.query)
  const optionErrors = validateCreateOptions(options)
  if (optionErrors.length > 0) throw invalidOptionsError('CreateOptions', optionErrors)
  const object = await decodeReviewBody(call, services, kind, options.fieldValidation)
  settleNamespace(object, call, kind.namespaced)
  for (const field of SYSTEM_FIELDS) delete object.metadata[field]
  review.applyDefaults?.(object, services)
  const tracked = trackAnswered(kind, services, { manager: managerOf(call, options), subresource: '' }, object)
  const errors = review.validate?.(tracked, services) ?? []
  // Upstream's reviews say neither their kind nor a name when they refuse.
  if (errors.length > 0) throw invalidError({ group: kind.group, kind: '' }, '', errors)
  const context = {
    ...services,
    user: call.user,
    verb: call.info.verb,
    dryRun: (options.dryRun ?? []).length > 0,
    signal: call.signal,
    namespace: call.info.namespace,
  }
  const answer = await review.answer(tracked, context)
  const { schemaFor, convert, memos } = services
  const representation = new Representation({ kind, stored: kind, schemaFor, convert, memos })
  const typeMeta = { kind: answer.kind ?? kind.kind, apiVersion: answer.apiVersion ?? apiVersionOf(kind) }
  return answerWithValue(representation, { ...answer, ...typeMeta }, { form, status: 201 })
}
