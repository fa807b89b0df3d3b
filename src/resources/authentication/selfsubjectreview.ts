/** The SelfSubjectReview resource: returns the requesting user, for `kubectl auth whoami`. */
import { type SelfSubjectReview, SelfSubjectReviews } from '#apis/authentication/v1.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { timeOf } from '#meta/time.ts'

import { userInfo } from './tokenreview.ts'

export const selfSubjectReview: Review<SelfSubjectReview> = defineReview({
  kind: SelfSubjectReviews,
  answer(_review, { user, clock }) {
    const answer: SelfSubjectReview = {
      kind: SelfSubjectReviews.kind,
      apiVersion: apiVersionOf(SelfSubjectReviews),
      metadata: { creationTimestamp: timeOf(clock.now()) },
      status: { userInfo: userInfo(user) },
    }
    return Promise.resolve(answer)
  },
})
