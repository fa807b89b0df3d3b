import { TokenReviews } from '#apis/authentication/v1.ts'

import type { KindCases } from '../case.ts'

export const tokenReview: KindCases = {
  kind: TokenReviews,
  valid: { spec: { token: 'unknown' } },
  refused: [
    { why: 'no token', set: { '/spec/token': '' } },
    { why: 'no spec', set: { '/spec': undefined } },
    { why: 'a token that is a number', set: { '/spec/token': 7 } },
    { why: 'audiences that are a text', set: { '/spec/audiences': 'a' } },
    { why: 'another kind', set: { '/kind': 'TokenRequest' } },
    { why: 'another version', set: { '/apiVersion': 'authentication.k8s.io/v1beta1' } },
    { why: 'half of it', body: '{"spec":{"token":"unknown"' },
  ],
}
