import { VolumeAttachments } from '#apis/storage/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { shownAs } from '../our-words.ts'

const MESSAGE = 'x'.repeat(1025)

export const volumeAttachment: KindCases = {
  kind: VolumeAttachments,
  valid: {
    metadata: { name: 'refused' },
    spec: { attacher: 'disk.example.com', nodeName: 'n1', source: { persistentVolumeName: 'pv1' } },
  },
  refused: [
    { why: 'no attacher', set: { '/spec/attacher': '' } },
    { why: 'an attacher with a bad name', set: { '/spec/attacher': 'a_b' } },
    { why: 'an attacher with a long name', set: { '/spec/attacher': 'a'.repeat(64) } },
    { why: 'no node', set: { '/spec/nodeName': '' } },
    { why: 'a node with a bad name', set: { '/spec/nodeName': 'A_b' } },
    { why: 'no source', set: { '/spec/source': {} } },
    { why: 'an empty volume name', set: { '/spec/source/persistentVolumeName': '' } },
    { why: 'a bad volume name', set: { '/spec/source/persistentVolumeName': 'A_b' } },
    { why: 'two sources', set: { '/spec/source/inlineVolumeSpec': { capacity: { storage: '1Gi' } } } },
    { why: 'an empty volume', set: { '/spec/source': { inlineVolumeSpec: {} } } },
    {
      why: 'a volume of a sort that is not attached',
      set: { '/spec/source': { inlineVolumeSpec: { hostPath: { path: '/x' }, accessModes: ['ReadWriteOnce'] } } },
    },
    { why: 'no spec', set: { '/spec': undefined } },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    {
      why: 'another node',
      on: 'update',
      set: { '/spec/nodeName': 'n2' },
      ...shownAs({ attacher: 'disk.example.com', source: { persistentVolumeName: 'pv1' }, nodeName: 'n2' }),
    },
    {
      why: 'an error too long',
      on: 'update status',
      set: { '/status': { attached: false, attachError: { message: MESSAGE } } },
    },
    {
      why: 'a negative error code',
      on: 'update status',
      set: { '/status': { attached: false, detachError: { message: 'x', errorCode: -1 } } },
    },
    {
      why: 'metadata too large',
      on: 'update status',
      set: { '/status': { attached: true, attachmentMetadata: { a: 'x'.repeat(256 * 1024) } } },
    },
    { why: 'no resource version', on: 'update', set: { '/metadata/resourceVersion': undefined } },
    ...badMetadataUpdates,
  ],
}
