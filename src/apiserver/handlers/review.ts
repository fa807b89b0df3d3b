/** Handles kinds that are never stored: POST sends a review, and the response is the same object with a status. */
import type { Answer, Call } from '#component/requests/call.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'
import { createOptionsQuery, invalidOptionsError, validateCreateOptions } from '#meta/options.ts'
import { decodeQuery } from '#meta/query.ts'
import { invalidError, methodNotSupportedError } from '#meta/status-errors.ts'

import { admit } from '../registry/admitting.ts'
import { trackAnswered } from '../registry/field-tracking.ts'
import { Representation } from '../registry/representation.ts'
import type { Review } from '../registry/resource.ts'
import type { Services, WriteRequest } from '../registry/services.ts'
import { BUILT_IN } from '../registry/shapes.ts'
import { answerWithValue } from './answers.ts'
import { decodeReviewBody, settleNamespace, writeRequestOf } from './body.ts'
import { formOf } from './view.ts'

/** Fields that only the server sets; the client's values are ignored. */
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
  const admitted = await admitReview(review, services, request, object)
  const { verb, namespace } = call.info
  const { dryRun, signal, user } = request
  const answer = await review.answer(admitted, { ...services, user, verb, dryRun, signal, namespace })
  const representation = new Representation({ kind, stored: kind, shapes: BUILT_IN, memos: services.memos })
  const typeMeta = { kind: answer.kind ?? kind.kind, apiVersion: answer.apiVersion ?? apiVersionOf(kind) }
  return answerWithValue(representation, { ...answer, ...typeMeta }, { form, status: 201 })
}

/** The same steps as for stored objects: default, track, admit, validate. */
async function admitReview(
  review: Review,
  services: Services,
  request: WriteRequest,
  sent: KubeObject,
): Promise<KubeObject> {
  const { kind } = review
  review.applyDefaults?.(sent, services)
  const tracking = trackAnswered(kind, services, request, sent)
  const object = tracking instanceof Promise ? await tracking : tracking
  const { name = '' } = object.metadata
  const subject = { operation: 'CREATE' as const, kind, name, object, oldObject: undefined }
  const validate = await admit(services, request, subject)
  const errors = review.validate?.(object, services) ?? []
  // Errors of upstream's reviews contain neither kind nor name.
  if (errors.length > 0) throw invalidError({ group: kind.group, kind: '' }, '', errors)
  await validate()
  return object
}
