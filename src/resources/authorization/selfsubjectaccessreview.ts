/** The SelfSubjectAccessReview resource: checks the requester's own access, for `kubectl auth can-i`. */
import { type SelfSubjectAccessReview, SelfSubjectAccessReviews } from '#apis/authorization/v1.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'
import type { Authorizer } from '#auth/authorizer.ts'

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
