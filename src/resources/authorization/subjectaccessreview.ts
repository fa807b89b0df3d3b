/** SubjectAccessReview: may somebody do something? Asked by those who decide for others, such as kubelets. */
import { type SubjectAccessReview, SubjectAccessReviews } from '#apis/authorization/v1.ts'
import type { Authorizer } from '#apiserver/authorizers/authorizer.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'

import {
  questionFrom,
  statusFrom,
  userFrom,
  validateNoMetadata,
  validateQuestion,
  validateSelectors,
  validateSubject,
} from './access-attributes.ts'

export function defineSubjectAccessReview(authorizer: Authorizer): Review<SubjectAccessReview> {
  return defineReview({
    kind: SubjectAccessReviews,
    validate: (review) => [
      ...validateQuestion(review.spec),
      ...validateSubject(review.spec),
      ...validateSelectors(review.spec),
      ...validateNoMetadata(review),
    ],
    async answer(review) {
      const question = questionFrom(review.spec)
      const verdict = await authorizer.authorize(userFrom(review.spec), question.access)
      return { ...review, status: statusFrom(verdict, question) }
    },
  })
}
