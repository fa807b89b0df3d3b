/**
 * The LocalSubjectAccessReview resource: a SubjectAccessReview within one namespace, so that the permission to create
 * it can be granted per namespace.
 */
import { type LocalSubjectAccessReview, LocalSubjectAccessReviews } from '#apis/authorization/v1.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'

import {
  questionFrom,
  statusFrom,
  userFrom,
  validateNoMetadata,
  validateQuestion,
  validateSelectors,
  validateSubject,
} from './access-attributes.ts'

export function defineLocalSubjectAccessReview(authorizer: Authorizer): Review<LocalSubjectAccessReview> {
  return defineReview({
    kind: LocalSubjectAccessReviews,
    validate: (review) => [
      ...validateQuestion(review.spec),
      ...validateSubject(review.spec),
      ...validateSelectors(review.spec),
      ...validateNoMetadata(review, ['namespace']),
      ...validateNamespace(review),
    ],
    async answer(review) {
      const question = questionFrom(review.spec)
      const verdict = await authorizer.authorize(userFrom(review.spec), question.access)
      return { ...review, status: statusFrom(verdict, question) }
    },
  })
}

function validateNamespace({ metadata, spec }: LocalSubjectAccessReview): FieldError[] {
  const { resourceAttributes, nonResourceAttributes } = spec
  const { namespace = '' } = resourceAttributes ?? {}
  return collectErrors(
    resourceAttributes !== undefined &&
      namespace !== (metadata.namespace ?? '') &&
      fieldPath('spec.resourceAttributes.namespace').invalid(namespace, 'must match metadata.namespace'),
    nonResourceAttributes !== undefined &&
      fieldPath('spec.nonResourceAttributes').invalid(nonResourceAttributes, 'disallowed on this kind of request'),
  )
}
