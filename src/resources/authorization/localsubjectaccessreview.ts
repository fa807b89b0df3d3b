/** LocalSubjectAccessReview: the same question inside one namespace, so that it can be allowed for that alone. */
import { type LocalSubjectAccessReview, LocalSubjectAccessReviews } from '#apis/authorization/v1.ts'
import type { Authorizer } from '#apiserver/authorizers/authorizer.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'
import { type FieldError, invalid } from '#meta/validation/field-error.ts'

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
  const errors: FieldError[] = []
  const { namespace = '' } = resourceAttributes ?? {}
  if (resourceAttributes !== undefined && namespace !== (metadata.namespace ?? '')) {
    errors.push(invalid('spec.resourceAttributes.namespace', namespace, 'must match metadata.namespace'))
  }
  if (nonResourceAttributes !== undefined) {
    errors.push(invalid('spec.nonResourceAttributes', nonResourceAttributes, 'disallowed on this kind of request'))
  }
  return errors
}
