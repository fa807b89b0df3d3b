import { ControllerRevisions } from '#apis/apps/v1.ts'

import type { KindCases } from '../case.ts'

export const controllerRevision: KindCases = {
  kind: ControllerRevisions,
  valid: { metadata: { name: 'web-1' }, data: { spec: { a: 1 } }, revision: 1 },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Web' } },
    { why: 'the revision is negative', set: { '/revision': -1 } },
    { why: 'the data is missing', set: { '/data': undefined } },
    { why: 'data is text', set: { '/data': 'x' } },
    { why: 'the revision is text', set: { '/revision': 'one' } },
    { why: 'the data changes', on: 'update', set: { '/data': { spec: { a: 2 } } } },
    { why: 'the data is removed', on: 'update', set: { '/data': undefined } },
    { why: 'the revision becomes negative', on: 'update', set: { '/revision': -1 } },
  ],
}
