import { SubjectAccessReviews } from '#apis/authorization/v1.ts'

import type { KindCases } from '../case.ts'
import { shownAs } from '../our-words.ts'
import { badQuestions } from './questions.ts'

export const subjectAccessReview: KindCases = {
  kind: SubjectAccessReviews,
  valid: { spec: { user: 'jane', resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } } },
  refused: [
    ...badQuestions,
    { why: 'no user and no group', set: { '/spec/user': undefined } },
    {
      why: 'two questions',
      set: { '/spec/nonResourceAttributes': { path: '/healthz', verb: 'get' } },
      ...shownAs({ path: '/healthz', verb: 'get' }),
    },
    {
      why: 'a name',
      set: { '/metadata': { name: 'x' } },
    },
    { why: 'an empty object', set: { '/spec': {} } },
  ],
  taken: [{ why: 'what only the server sets', set: { '/metadata': { uid: 'u', selfLink: 'x' } } }],
}
