import { CSINodes } from '#apis/storage/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

const driver = { name: 'disk.example.com', nodeID: 'n1', topologyKeys: ['zone'], allocatable: { count: 10 } }

export const csiNode: KindCases = {
  kind: CSINodes,
  valid: { metadata: { name: 'refused' }, spec: { drivers: [driver] } },
  refused: [
    { why: 'a driver without a name', set: { '/spec/drivers/0/name': '' } },
    { why: 'a driver with a bad name', set: { '/spec/drivers/0/name': 'a_b' } },
    { why: 'a driver with a long name', set: { '/spec/drivers/0/name': 'a'.repeat(64) } },
    { why: 'a driver without a node', set: { '/spec/drivers/0/nodeID': '' } },
    { why: 'a node too long', set: { '/spec/drivers/0/nodeID': 'a'.repeat(257) } },
    { why: 'a negative count', set: { '/spec/drivers/0/allocatable/count': -1 } },
    { why: 'a repeated driver', set: { '/spec/drivers/-': driver } },
    { why: 'an empty topology key', set: { '/spec/drivers/0/topologyKeys': [''] } },
    { why: 'a repeated topology key', set: { '/spec/drivers/0/topologyKeys': ['zone', 'zone'] } },
    { why: 'a topology key with a space', set: { '/spec/drivers/0/topologyKeys': ['a b'] } },
    { why: 'an empty driver', set: { '/spec/drivers': [{}] } },
    { why: 'a count that is a text', set: { '/spec/drivers/0/allocatable/count': 'x' } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    {
      why: 'another node',
      on: 'update',
      set: { '/spec/drivers/0/nodeID': 'n2' },
      ...shownAs({ name: 'disk.example.com', nodeID: 'n2', topologyKeys: ['zone'] }),
    },
    { why: 'the count becomes negative', on: 'update', set: { '/spec/drivers/0/allocatable/count': -1 } },
    { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
    ...badMetadataUpdates,
  ],
}
