/** Kinds that are answered and never stored: POST a question, get the same object back with the answer in it. */
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { createOptionsQuery, invalidOptionsError, validateCreateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { invalidError, methodNotSupportedError } from '#meta/status-errors.ts'

import { Representation } from '../answers/representation.ts'
import type { Answer, Call } from '../call.ts'
import { admit } from '../registry/admitting.ts'
import { trackAnswered } from '../registry/field-tracking.ts'
import type { Review } from '../registry/resource.ts'
import type { Services, WriteRequest } from '../registry/services.ts'
import { BUILT_IN } from '../registry/shapes.ts'
import { answerWithValue } from './answers.ts'
import { decodeReviewBody, settleNamespace, writeRequestOf } from './body.ts'
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
  const request = writeRequestOf(call, kind, options)
  const asked = await letIn(review, services, request, object)
  const { verb, namespace } = call.info
  const { dryRun, signal, user } = request
  const answer = await review.answer(asked, { ...services, user, verb, dryRun, signal, namespace })
  const representation = new Representation({ kind, stored: kind, shapes: BUILT_IN, memos: services.memos })
  const typeMeta = { kind: answer.kind ?? kind.kind, apiVersion: answer.apiVersion ?? apiVersionOf(kind) }
  return answerWithValue(representation, { ...answer, ...typeMeta }, { form, status: 201 })
}

/** The same steps as for what is stored: default, track, admit, validate. */
async function letIn(review: Review, services: Services, request: WriteRequest, sent: KubeObject): Promise<KubeObject> {
  const { kind } = review
  review.applyDefaults?.(sent, services)
  const object = trackAnswered(kind, services, request, sent)
  const { name = '' } = object.metadata
  const subject = { operation: 'CREATE' as const, kind, name, object, oldObject: undefined }
  const validate = await admit(services, request, subject)
  const errors = review.validate?.(object, services) ?? []
  // Upstream's reviews say neither their kind nor a name when they refuse.
  if (errors.length > 0) throw invalidError({ group: kind.group, kind: '' }, '', errors)
  await validate()
  return object
}
