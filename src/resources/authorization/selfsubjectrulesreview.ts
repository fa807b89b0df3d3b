/** The SelfSubjectRulesReview resource: lists the requester's rules in a namespace, for `kubectl auth can-i --list`. */
import { type SelfSubjectRulesReview, SelfSubjectRulesReviews } from '#apis/authorization/v1.ts'
import { defineReview, type Review } from '#apiserver/registry/resource.ts'
import type { Authorizer } from '#auth/authorizer.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { badRequestError } from '#meta/status-errors.ts'

export function defineSelfSubjectRulesReview(authorizer: Authorizer): Review<SelfSubjectRulesReview> {
  return defineReview({
    kind: SelfSubjectRulesReviews,
    answer({ spec: { namespace = '' } }, { user }) {
      if (namespace === '') throw badRequestError('no namespace on request')
      const { resourceRules, nonResourceRules, incomplete, error } = authorizer.rulesFor(user, namespace)
      // Upstream returns a new object without the spec.
      const review: SelfSubjectRulesReview = {
        kind: SelfSubjectRulesReviews.kind,
        apiVersion: apiVersionOf(SelfSubjectRulesReviews),
        metadata: {},
        spec: {},
        status: {
          resourceRules: resourceRules.map(({ verbs, apiGroups, resources, resourceNames }) => ({
            verbs: [...verbs],
            ...listed({ apiGroups, resources, resourceNames }),
          })),
          nonResourceRules: nonResourceRules.map(({ verbs, nonResourceURLs }) => ({
            verbs: [...verbs],
            ...listed({ nonResourceURLs }),
          })),
          incomplete,
          ...(error === undefined ? {} : { evaluationError: error }),
        },
      }
      return Promise.resolve(review)
    },
  })
}

function listed(lists: Readonly<Record<string, readonly string[]>>): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(lists)
      .filter(([, list]) => list.length > 0)
      .map(([name, list]) => [name, [...list]]),
  )
}
