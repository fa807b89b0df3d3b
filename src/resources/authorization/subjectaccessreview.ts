/** The SubjectAccessReview resource: checks another user's access, for kubelets and other servers. */
import { type SubjectAccessReview, SubjectAccessReviews } from '#apis/authorization/v1.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'
import type { Authorizer } from '#auth/authorizer.ts'

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
