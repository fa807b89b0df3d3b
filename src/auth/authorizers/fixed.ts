/** Authorizers with a constant answer: always allow, always deny, and the group system:masters. */
import { ALLOWED, type Authorizer, NO_OPINION, NO_RULES, noOpinion, PRIVILEGED_GROUP } from '../authorizer.ts'

export const alwaysAllow: Authorizer = {
  authorize: () => ALLOWED,
  rulesFor: () => ({
    resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: [] }],
    nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
    incomplete: false,
  }),
}

export const alwaysDeny: Authorizer = {
  authorize: () => noOpinion('Everything is forbidden.'),
  rulesFor: () => NO_RULES,
}

/** Runs before all others, so that no policy can lock administrators out. Its rights are not listed as rules. */
export const privilegedGroup: Authorizer = {
  authorize: ({ groups }) => (groups.includes(PRIVILEGED_GROUP) ? ALLOWED : NO_OPINION),
  rulesFor: () => NO_RULES,
}
