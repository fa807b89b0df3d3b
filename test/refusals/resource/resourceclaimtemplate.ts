import { ResourceClaimTemplates } from '#apis/resource/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'
import { badClaims, claimSpec, manyTolerations } from './device-requests.ts'

export const resourceClaimTemplate: KindCases = {
  kind: ResourceClaimTemplates,
  valid: { metadata: { name: 'devices' }, spec: { metadata: { labels: { a: 'b' } }, spec: claimSpec } },
  refused: [
    ...badClaims('/spec/spec'),
    { why: 'a label with a space', set: { '/spec/metadata/labels': { 'a b': 'c' } } },
    { why: 'an annotation with a space', set: { '/spec/metadata/annotations': { 'a b': 'c' } } },
    { why: 'a name for its claims', set: { '/spec/metadata/name': 'x' } },
    { why: 'a UID for its claims', set: { '/spec/metadata/uid': 'x' } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Devices' } },
    {
      why: 'another label',
      on: 'update',
      set: { '/spec/metadata/labels/a': 'c' },
      ...shownAs({ metadata: { labels: { a: 'c' } }, spec: claimSpec }),
    },
    ...badMetadataUpdates,
  ],
  taken: manyTolerations('/spec/spec'),
}
