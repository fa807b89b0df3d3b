import { SelfSubjectAccessReviews } from '#apis/authorization/v1.ts'

import type { KindCases } from '../case.ts'
import { shownAs } from '../our-words.ts'
import { badQuestions } from './questions.ts'

export const selfSubjectAccessReview: KindCases = {
  kind: SelfSubjectAccessReviews,
  valid: { spec: { resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } } },
  refused: [
    ...badQuestions,
    {
      why: 'two questions',
      set: { '/spec/nonResourceAttributes': { path: '/healthz', verb: 'get' } },
      ...shownAs({ path: '/healthz', verb: 'get' }),
    },
    {
      why: 'a name',
      set: { '/metadata': { name: 'x' } },
    },
  ],
  taken: [{ why: 'what only the server sets', set: { '/metadata': { uid: 'u', selfLink: 'x' } } }],
}
