import { SelfSubjectRulesReviews } from '#apis/authorization/v1.ts'

import type { KindCases } from '../case.ts'

export const selfSubjectRulesReview: KindCases = {
  kind: SelfSubjectRulesReviews,
  valid: { spec: { namespace: 'default' } },
  refused: [
    { why: 'no namespace', set: { '/spec/namespace': '' } },
    { why: 'no spec', set: { '/spec': undefined } },
    { why: 'a namespace that is a number', set: { '/spec/namespace': 7 } },
    { why: 'a spec that is a list', set: { '/spec': [] } },
    { why: 'another kind', set: { '/kind': 'SelfSubjectAccessReview' } },
    { why: 'half of it', body: '{"spec":{"namespace":"default"' },
  ],
}
