import { LocalSubjectAccessReviews } from '#apis/authorization/v1.ts'

import type { KindCases } from '../case.ts'
import { shownAs } from '../our-words.ts'
import { badQuestions } from './questions.ts'

export const localSubjectAccessReview: KindCases = {
  kind: LocalSubjectAccessReviews,
  valid: {
    metadata: { namespace: 'default' },
    spec: { user: 'jane', resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } },
  },
  refused: [
    ...badQuestions,
    { why: 'no user and no group', set: { '/spec/user': undefined } },
    {
      why: 'a path',
      set: { '/spec': { user: 'jane', nonResourceAttributes: { path: '/healthz', verb: 'get' } } },
      ...shownAs({ path: '/healthz', verb: 'get' }),
    },
    { why: 'another namespace', set: { '/spec/resourceAttributes/namespace': 'kube-system' } },
    { why: 'no namespace', set: { '/spec/resourceAttributes/namespace': undefined } },
    {
      why: 'a name',
      set: { '/metadata/name': 'x' },
    },
  ],
}
