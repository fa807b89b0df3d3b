import { CSIStorageCapacities } from '#apis/storage/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

export const csiStorageCapacity: KindCases = {
  kind: CSIStorageCapacities,
  valid: {
    metadata: { name: 'here' },
    storageClassName: 'fast',
    nodeTopology: { matchLabels: { zone: 'a' } },
    capacity: '10Gi',
    maximumVolumeSize: '1Gi',
  },
  refused: [
    { why: 'no class', set: { '/storageClassName': '' } },
    { why: 'a missing class', set: { '/storageClassName': undefined } },
    { why: 'a class with a bad name', set: { '/storageClassName': 'A_b' } },
    { why: 'a negative capacity', set: { '/capacity': '-1' } },
    { why: 'a capacity that is not a quantity', set: { '/capacity': 'much' } },
    { why: 'a topology with a bad key', set: { '/nodeTopology': { matchLabels: { 'a b': 'c' } } } },
    { why: 'a topology with a bad value', set: { '/nodeTopology': { matchLabels: { a: '-' } } } },
    {
      why: 'a topology with an unknown operator',
      set: { '/nodeTopology': { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
    },
    { why: 'a name with capitals', set: { '/metadata/name': 'Here' } },
    { why: 'another class', on: 'update', set: { '/storageClassName': 'slow' } },
    { why: 'another topology', on: 'update', set: { '/nodeTopology/matchLabels/zone': 'b' } },
    { why: 'the topology is removed', on: 'update', set: { '/nodeTopology': undefined } },
    { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
    ...badMetadataUpdates,
  ],
}
