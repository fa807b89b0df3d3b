import { PersistentVolumes } from '#apis/core/v1.ts'

import { printing, differing, type KindCases, type Trial } from '../case.ts'

/** The volume with another source instead of the host's directory. */
const source = (why: string, part: Readonly<Record<string, unknown>>): Trial => ({
  why,
  set: {
    '/spec/hostPath': undefined,
    ...Object.fromEntries(Object.entries(part).map(([name, value]) => [`/spec/${name}`, value])),
  },
})

const csi = { driver: 'a.example.com', volumeHandle: 'v' }
const local = (terms: unknown[]): object => ({ required: { nodeSelectorTerms: terms } })

export const persistentVolume: KindCases = {
  kind: PersistentVolumes,
  valid: {
    metadata: { name: 'disk' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: '/data' },
      persistentVolumeReclaimPolicy: 'Retain',
    },
  },
  refused: [
    { why: 'the name has capitals', set: { '/metadata/name': 'Disk' } },
    { why: 'access modes are missing', set: { '/spec/accessModes': [] } },
    { why: 'an access mode is unknown', set: { '/spec/accessModes': ['ReadSometimes'] } },
    { why: 'one access mode excludes others', set: { '/spec/accessModes': ['ReadWriteOncePod', 'ReadOnlyMany'] } },
    { why: 'the capacity is missing', set: { '/spec/capacity': undefined } },
    { why: 'the capacity is of two kinds', set: { '/spec/capacity/cpu': '1' } },
    { why: 'an empty capacity', set: { '/spec/capacity/storage': '0' } },
    { why: 'the capacity is negative', set: { '/spec/capacity/storage': '-1Gi' } },
    { why: 'the reclaim policy is unknown', set: { '/spec/persistentVolumeReclaimPolicy': 'Burn' } },
    {
      why: 'the root of the host is recycled',
      set: { '/spec/hostPath/path': '/', '/spec/persistentVolumeReclaimPolicy': 'Recycle' },
    },
    { why: 'the volume mode is unknown', set: { '/spec/volumeMode': 'Tape' } },
    { why: 'the class has capitals', set: { '/spec/storageClassName': 'Fast' } },
    { why: 'the attributes class is empty', set: { '/spec/volumeAttributesClassName': '' } },
    { why: 'the host path climbs', set: { '/spec/hostPath/path': '/a/../b' } },
    source('the source is missing', {}),
    { why: 'there are two sources', set: { '/spec/nfs': { server: 's', path: '/a' } } },
    source('nfs has no path', { nfs: { server: 's', path: '' } }),
    source('csi has no driver', { csi: { ...csi, driver: '' } }),
    source('csi has no handle', { csi: { ...csi, volumeHandle: '' } }),
    source('a csi driver has a space', { csi: { ...csi, driver: 'a b' } }),
    source('attributes are of no csi volume', { hostPath: { path: '/a' }, volumeAttributesClassName: 'fast' }),
    source('a local volume has no path', { local: { path: '' }, nodeAffinity: local([{ matchExpressions: [] }]) }),
    source('a local volume is everywhere', { local: { path: '/a' } }),
    source('the affinity has no terms', { local: { path: '/a' }, nodeAffinity: local([]) }),
    source('the affinity is empty', { local: { path: '/a' }, nodeAffinity: {} }),
    source('an iscsi volume is empty', { iscsi: {} }),
    source('an azure file has no secret', { azureFile: { secretName: '', shareName: '' } }),
    source('fibre channel has targets without a lun', { fc: { targetWWNs: ['a'] } }),
    source('a rados volume is empty', { rbd: {} }),
    {
      why: 'the source changes',
      on: 'update',
      set: { '/spec/hostPath/path': '/other' },
      ours: differing('spec.hostPath.path: "/data" -> "/other"'),
    },
    { why: 'the volume mode changes', on: 'update', set: { '/spec/volumeMode': 'Block' } },
    { why: 'the capacity is removed', on: 'update', set: { '/spec/capacity': undefined } },
    {
      why: 'the affinity changes',
      on: 'update',
      stored: { '/spec/nodeAffinity': local([{ matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] }]) },
      set: { '/spec/nodeAffinity': local([{ matchExpressions: [{ key: 'a', operator: 'In', values: ['c'] }] }]) },
      ours: printing(
        '{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In","values":["c"]}]}]}}',
      ),
    },
    { why: 'the attributes class changes', on: 'update', set: { '/spec/volumeAttributesClassName': 'fast' } },
    { why: 'the reclaim policy becomes invalid', on: 'update', set: { '/spec/persistentVolumeReclaimPolicy': 'Burn' } },
  ],
  taken: [source('a csi secret has no namespace', { csi: { ...csi, nodeStageSecretRef: { name: 'a' } } })],
}
