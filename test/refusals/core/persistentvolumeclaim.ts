import { PersistentVolumeClaims } from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'

import { differing, type KindCases } from '../case.ts'

const BOUND = { '/spec/volumeName': 'disk', '/spec/storageClassName': 'fixed' }

export const persistentVolumeClaim: KindCases = {
  kind: PersistentVolumeClaims,
  given: [{ kind: StorageClasses, object: { metadata: { name: 'fixed' }, provisioner: 'example.com/none' } }],
  valid: {
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'fixed' },
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Data' } },
    { why: 'the spec is missing', set: { '/spec': undefined } },
    { why: 'access modes are missing', set: { '/spec/accessModes': [] } },
    { why: 'an access mode is unknown', set: { '/spec/accessModes': ['ReadSometimes'] } },
    { why: 'one access mode excludes others', set: { '/spec/accessModes': ['ReadWriteOncePod', 'ReadWriteMany'] } },
    { why: 'no storage is requested', set: { '/spec/resources/requests': {} } },
    { why: 'no storage is too little', set: { '/spec/resources/requests/storage': '0' } },
    { why: 'a negative amount is requested', set: { '/spec/resources/requests/storage': '-1Gi' } },
    { why: 'storage is not a quantity', set: { '/spec/resources/requests/storage': '1 GB' } },
    {
      why: 'the selector operator is unknown',
      set: { '/spec/selector': { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
    },
    {
      why: 'the selector has no values',
      set: { '/spec/selector': { matchExpressions: [{ key: 'a', operator: 'In' }] } },
    },
    { why: 'the class has capitals', set: { '/spec/storageClassName': 'Fast' } },
    { why: 'the volume mode is unknown', set: { '/spec/volumeMode': 'Tape' } },
    { why: 'the source has no name', set: { '/spec/dataSource': { kind: 'PersistentVolumeClaim', name: '' } } },
    {
      why: 'the two sources differ',
      set: {
        '/spec/dataSource': { kind: 'PersistentVolumeClaim', name: 'a' },
        '/spec/dataSourceRef': { kind: 'PersistentVolumeClaim', name: 'b' },
      },
    },
    { why: 'the attributes class has capitals', set: { '/spec/volumeAttributesClassName': 'Fast' } },
    {
      why: 'the access modes change',
      on: 'update',
      set: { '/spec/accessModes': ['ReadWriteMany'] },
      ours: differing('spec.accessModes[0]: "ReadWriteOnce" -> "ReadWriteMany"'),
    },
    {
      why: 'the class changes',
      on: 'update',
      stored: BOUND,
      set: { '/spec/storageClassName': 'other' },
      ours: differing('spec.storageClassName: "fixed" -> "other"'),
    },
    {
      why: 'a claim without a volume grows',
      on: 'update',
      set: { '/spec/resources/requests/storage': '2Gi' },
      ours: differing('spec.resources.requests.storage: "1Gi" -> "2Gi"'),
    },
    {
      why: 'a claim shrinks',
      on: 'update',
      stored: BOUND,
      set: { '/spec/resources/requests/storage': '500Mi' },
      ours: differing('spec.resources.requests.storage: "1Gi" -> "500Mi"'),
    },
    {
      why: 'the volume changes',
      on: 'update',
      stored: BOUND,
      set: { '/spec/volumeName': 'other' },
      ours: differing('spec.volumeName: "disk" -> "other"'),
    },
    {
      why: 'the selector changes',
      on: 'update',
      set: { '/spec/selector': { matchLabels: { a: 'b' } } },
      ours: differing('spec.selector: <unset> -> {"matchLabels":{"a":"b"}}'),
    },
    {
      why: 'the volume mode changes',
      on: 'update',
      set: { '/spec/volumeMode': 'Block' },
      ours: differing('spec.volumeMode: "Filesystem" -> "Block"'),
    },
    {
      why: 'the status has a negative capacity',
      on: 'update status',
      set: { '/status/capacity': { storage: '-1Gi' } },
    },
    {
      why: 'the status resizes in an unknown way',
      on: 'update status',
      set: { '/status/allocatedResourceStatuses': { storage: 'Odd' } },
    },
    {
      why: 'the status resizes an unknown resource',
      on: 'update status',
      set: { '/status/allocatedResources': { gpu: '1' } },
    },
  ],
  taken: [
    { why: 'its size is written in another way', on: 'update', set: { '/spec/resources/requests/storage': '1024Mi' } },
    { why: 'the source has a bad group', set: { '/spec/dataSource': { apiGroup: 'a b', kind: 'A', name: 'a' } } },
    { why: 'the source has no kind', set: { '/spec/dataSource': { kind: '', name: 'a' } } },
  ],
}
