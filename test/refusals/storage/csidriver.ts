import { CSIDrivers } from '#apis/storage/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

const tokens = (...tokenRequests: readonly object[]): Changes => ({ '/spec/tokenRequests': tokenRequests })

export const csiDriver: KindCases = {
  kind: CSIDrivers,
  valid: {
    metadata: { name: 'refused.example.com' },
    spec: { volumeLifecycleModes: ['Persistent'], tokenRequests: [{ audience: 'a', expirationSeconds: 600 }] },
  },
  refused: [
    { why: 'an unknown group policy', set: { '/spec/fsGroupPolicy': 'Odd' } },
    { why: 'an empty group policy', set: { '/spec/fsGroupPolicy': '' } },
    { why: 'a repeated audience', set: tokens({ audience: 'a' }, { audience: 'a' }) },
    { why: 'two tokens for anybody', set: tokens({}, {}) },
    { why: 'a token of a minute', set: tokens({ audience: 'a', expirationSeconds: 60 }) },
    { why: 'a token for ever', set: tokens({ audience: 'a', expirationSeconds: 4_294_967_297 }) },
    { why: 'an unknown lifecycle mode', set: { '/spec/volumeLifecycleModes': ['Persistent', 'Odd'] } },
    { why: 'limits counted too often', set: { '/spec/nodeAllocatableUpdatePeriodSeconds': 9 } },
    {
      why: 'tokens in secrets and no tokens',
      set: { '/spec/tokenRequests': undefined, '/spec/serviceAccountTokenInSecrets': true },
    },
    { why: 'a boolean that is a text', set: { '/spec/attachRequired': 'yes' } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    { why: 'attaching becomes needless', on: 'update', set: { '/spec/attachRequired': false } },
    { why: 'another lifecycle', on: 'update', set: { '/spec/volumeLifecycleModes': ['Ephemeral'] } },
    {
      why: 'an unknown lifecycle is added',
      on: 'update',
      set: { '/spec/volumeLifecycleModes': ['Persistent', 'Odd'] },
    },
    { why: 'the group policy becomes invalid', on: 'update', set: { '/spec/fsGroupPolicy': 'Odd' } },
    { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
    ...badMetadataUpdates,
  ],
}
