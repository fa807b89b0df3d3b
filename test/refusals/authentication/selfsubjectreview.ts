import { SelfSubjectReviews } from '#apis/authentication/v1.ts'

import type { KindCases } from '../case.ts'

/** It asks nothing, so only what cannot be read is refused. */
export const selfSubjectReview: KindCases = {
  kind: SelfSubjectReviews,
  valid: {},
  refused: [
    { why: 'metadata that is a text', set: { '/metadata': 'x' } },
    { why: 'a label that is a number', set: { '/metadata': { labels: { a: 1 } } } },
    { why: 'a status that is a list', set: { '/status': [] } },
    { why: 'another kind', set: { '/kind': 'TokenReview' } },
    { why: 'another version', set: { '/apiVersion': 'authentication.k8s.io/v1beta1' } },
    { why: 'a list', body: [] },
    { why: 'half of it', body: '{"kind":"SelfSubjectReview"' },
  ],
}
