/** Lists the review kinds, which are answered and never stored. */
import type { Review } from '#apiserver/registry/resource.ts'
import type { Authenticator } from '#auth/authenticators/index.ts'
import type { Authorizer } from '#auth/authorizer.ts'

import { selfSubjectReview } from './authentication/selfsubjectreview.ts'
import { defineTokenReview } from './authentication/tokenreview.ts'
import { defineLocalSubjectAccessReview } from './authorization/localsubjectaccessreview.ts'
import { defineSelfSubjectAccessReview } from './authorization/selfsubjectaccessreview.ts'
import { defineSelfSubjectRulesReview } from './authorization/selfsubjectrulesreview.ts'
import { defineSubjectAccessReview } from './authorization/subjectaccessreview.ts'

export interface ReviewParts {
  readonly authorizer: Authorizer
  readonly authenticateToken: Authenticator['authenticateToken']
}

export function createReviews({ authorizer, authenticateToken }: ReviewParts): readonly Review[] {
  return [
    selfSubjectReview,
    defineTokenReview(authenticateToken),
    defineSubjectAccessReview(authorizer),
    defineLocalSubjectAccessReview(authorizer),
    defineSelfSubjectAccessReview(authorizer),
    defineSelfSubjectRulesReview(authorizer),
  ]
}
