/** SelfSubjectAccessReview: may I do something? `kubectl auth can-i`. */
import { type SelfSubjectAccessReview, SelfSubjectAccessReviews } from '#apis/authorization/v1.ts'
import type { Authorizer } from '#apiserver/authorizers/authorizer.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'

import {
  questionFrom,
  statusFrom,
  validateNoMetadata,
  validateQuestion,
  validateSelectors,
} from './access-attributes.ts'

export function defineSelfSubjectAccessReview(authorizer: Authorizer): Review<SelfSubjectAccessReview> {
  return defineReview({
    kind: SelfSubjectAccessReviews,
    validate: (review) => [
      ...validateQuestion(review.spec),
      ...validateSelectors(review.spec),
      ...validateNoMetadata(review),
    ],
    async answer(review, { user }) {
      const question = questionFrom(review.spec)
      return { ...review, status: statusFrom(await authorizer.authorize(user, question.access), question) }
    },
  })
}
