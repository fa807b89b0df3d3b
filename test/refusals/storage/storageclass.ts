import { StorageClasses } from '#apis/storage/v1.ts'

import type { Changes, KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'

const topologies = (...terms: readonly (readonly object[])[]): Changes => ({
  '/allowedTopologies': terms.map((matchLabelExpressions) => ({ matchLabelExpressions })),
})

const MANY = Object.fromEntries(Array.from({ length: 513 }, (_, at) => [`k${at}`, '']))

export const storageClass: KindCases = {
  kind: StorageClasses,
  valid: {
    metadata: { name: 'refused' },
    provisioner: 'example.com/disk',
    parameters: { type: 'fast' },
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
    allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a'] }] }],
  },
  refused: [
    { why: 'no provisioner', set: { '/provisioner': undefined } },
    { why: 'a provisioner with a space', set: { '/provisioner': 'a b' } },
    { why: 'a provisioner of two paths', set: { '/provisioner': 'a/b/c' } },
    { why: 'a parameter without a name', set: { '/parameters': { '': 'x' } } },
    { why: 'too many parameters', set: { '/parameters': MANY } },
    { why: 'parameters too large', set: { '/parameters': { a: 'x'.repeat(256 * 1024) } } },
    { why: 'a parameter that is a number', set: { '/parameters': { a: 1 } } },
    { why: 'an unknown reclaim policy', set: { '/reclaimPolicy': 'Keep' } },
    { why: 'a removed reclaim policy', set: { '/reclaimPolicy': 'Recycle' } },
    { why: 'an unknown binding mode', set: { '/volumeBindingMode': 'Later' } },
    { why: 'an empty binding mode', set: { '/volumeBindingMode': '' } },
    { why: 'a topology without values', set: topologies([{ key: 'zone', values: [] }]) },
    { why: 'a topology with a bad key', set: topologies([{ key: 'a b', values: ['a'] }]) },
    { why: 'a topology with a repeated value', set: topologies([{ key: 'zone', values: ['a', 'a'] }]) },
    {
      why: 'a topology with a repeated key',
      set: topologies([
        { key: 'zone', values: ['a'] },
        { key: 'zone', values: ['b'] },
      ]),
    },
    {
      why: 'a repeated topology',
      set: topologies([{ key: 'zone', values: ['a'] }], [{ key: 'zone', values: ['a'] }]),
    },
    { why: 'a name with capitals', set: { '/metadata/name': 'Refused' } },
    { why: 'another provisioner', on: 'update', set: { '/provisioner': 'other' } },
    { why: 'other parameters', on: 'update', set: { '/parameters': { type: 'slow' } } },
    { why: 'the parameters are removed', on: 'update', set: { '/parameters': undefined } },
    { why: 'another reclaim policy', on: 'update', set: { '/reclaimPolicy': 'Retain' } },
    { why: 'another binding mode', on: 'update', set: { '/volumeBindingMode': 'WaitForFirstConsumer' } },
    {
      why: 'everything changes',
      on: 'update',
      set: {
        '/provisioner': 'other',
        '/parameters': undefined,
        '/reclaimPolicy': 'Retain',
        '/volumeBindingMode': 'WaitForFirstConsumer',
      },
    },
    ...badMetadataUpdates,
  ],
}
