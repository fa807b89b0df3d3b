import { Leases } from '#apis/coordination/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

export const lease: KindCases = {
  kind: Leases,
  valid: {
    metadata: { name: 'leader' },
    spec: { holderIdentity: 'a', leaseDurationSeconds: 10, leaseTransitions: 1 },
  },
  refused: [
    { why: 'a duration of 0', set: { '/spec/leaseDurationSeconds': 0 } },
    { why: 'a negative duration', set: { '/spec/leaseDurationSeconds': -1 } },
    { why: 'negative transitions', set: { '/spec/leaseTransitions': -1 } },
    { why: 'both negative', set: { '/spec/leaseDurationSeconds': -2, '/spec/leaseTransitions': -5 } },
    { why: 'a duration that is a text', set: { '/spec/leaseDurationSeconds': '10' } },
    { why: 'an invalid time', set: { '/spec/renewTime': 'yesterday' } },
    { why: 'a time without a zone', set: { '/spec/acquireTime': '2026-01-01T00:00:00' } },
    { why: 'a spec that is a text', set: { '/spec': 'x' } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Leader' } },
    { why: 'no name', set: { '/metadata/name': undefined } },
    { why: 'the duration becomes 0', on: 'update', set: { '/spec/leaseDurationSeconds': 0 } },
    { why: 'the transitions become negative', on: 'update', set: { '/spec/leaseTransitions': -1 } },
    { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
    { why: 'an old resource version', on: 'update', set: { '/metadata/resourceVersion': '1' } },
    ...badMetadataUpdates,
  ],
}
