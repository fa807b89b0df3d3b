/** Refusal cases: invalid volumes of a pod. Each case adds one to the pod of `pod.ts`. */
import type { Refusal, Trial } from '../case.ts'

function volume(why: string, source: object): Refusal {
  return { why, set: { '/spec/volumes/-': { name: 'more', ...source } } }
}

const projected = (...sources: object[]): object => ({ projected: { sources } })

export const podVolumes: readonly Refusal[] = [
  volume('a volume has no name', { name: '', emptyDir: {} }),
  volume('a volume name has a dot', { name: 'a.b', emptyDir: {} }),
  volume('two volumes have one name', { name: 'scratch', emptyDir: {} }),
  volume('a volume has two sources', { emptyDir: {}, hostPath: { path: '/x' } }),
  volume('an empty directory has a negative size', { emptyDir: { sizeLimit: '-1' } }),
  volume('a host path is missing', { hostPath: { path: '' } }),
  volume('a host path climbs', { hostPath: { path: '/a/../b' } }),
  volume('a host path is of an unknown type', { hostPath: { path: '/a', type: 'Tape' } }),
  volume('a secret has no name', { secret: {} }),
  volume('a secret has a bad mode', { secret: { secretName: 's', defaultMode: 0o1000 } }),
  volume('a secret item has no path', { secret: { secretName: 's', items: [{ key: 'a' }] } }),
  volume('a secret item climbs', { secret: { secretName: 's', items: [{ key: 'a', path: '../b' }] } }),
  volume('a secret item has a negative mode', {
    secret: { secretName: 's', items: [{ key: 'a', path: 'b', mode: -1 }] },
  }),
  volume('a configmap has no name', { configMap: {} }),
  volume('a configmap item has no key', { configMap: { name: 'c', items: [{ key: '', path: 'a' }] } }),
  volume('a configmap item is absolute', { configMap: { name: 'c', items: [{ key: 'a', path: '/a' }] } }),
  volume('a configmap item begins with dots', { configMap: { name: 'c', items: [{ key: 'a', path: '..a' }] } }),
  volume('a claim has no name', { persistentVolumeClaim: { claimName: '' } }),
  volume('a downward API file without a source', { downwardAPI: { items: [{ path: 'a' }] } }),
  volume('a file of the downward api reads two things', {
    downwardAPI: {
      items: [
        {
          path: 'a',
          fieldRef: { fieldPath: 'metadata.name' },
          resourceFieldRef: { containerName: 'web', resource: 'limits.cpu' },
        },
      ],
    },
  }),
  volume('a downward API file with an unsupported field', {
    downwardAPI: { items: [{ path: 'a', fieldRef: { fieldPath: 'status.podIP' } }] },
  }),
  volume('a file of the downward api names no container', {
    downwardAPI: { items: [{ path: 'a', resourceFieldRef: { resource: 'limits.cpu' } }] },
  }),
  volume('a projection has a source with two', projected({ configMap: { name: 'a' }, secret: { name: 'b' } })),
  volume(
    'a projection with a repeated path',
    projected(
      { configMap: { name: 'a', items: [{ key: 'a', path: 'x' }] } },
      { secret: { name: 'b', items: [{ key: 'a', path: 'x' }] } },
    ),
  ),
  volume('a projected token lives too short', projected({ serviceAccountToken: { path: 't', expirationSeconds: 60 } })),
  volume(
    'a projected token lives too long',
    projected({ serviceAccountToken: { path: 't', expirationSeconds: 4_294_967_297 } }),
  ),
  volume('a projected token has no path', projected({ serviceAccountToken: { path: '' } })),
  volume('a projected secret has no name', projected({ secret: {} })),
  volume('an nfs volume has no server', { nfs: { server: '', path: '/a' } }),
  volume('an nfs path is relative', { nfs: { server: 's', path: 'a' } }),
  volume('an iscsi volume is empty', { iscsi: {} }),
  volume('an iscsi name is none', { iscsi: { targetPortal: 'p', iqn: 'x', lun: 256 } }),
  volume('a csi volume has no driver', { csi: { driver: '' } }),
  volume('a csi driver has a space', { csi: { driver: 'a b' } }),
  volume('a csi secret has no name', { csi: { driver: 'a.example.com', nodePublishSecretRef: { name: '' } } }),
  volume('an image volume names none', { image: { reference: '' } }),
  volume('an image volume is pulled in an unknown way', { image: { reference: 'x', pullPolicy: 'Sometimes' } }),
  volume('an ephemeral claim has no template', { ephemeral: {} }),
  volume('an ephemeral claim is empty', { ephemeral: { volumeClaimTemplate: { spec: {} } } }),
  volume('an ephemeral claim has an empty mode', {
    ephemeral: {
      volumeClaimTemplate: {
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, volumeMode: '' },
      },
    },
  }),
  volume('an ephemeral claim has a name', {
    ephemeral: {
      volumeClaimTemplate: {
        metadata: { name: 'x' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    },
  }),
  volume('a fibre channel volume is empty', { fc: {} }),
  volume('a git volume has no repository', { gitRepo: { repository: '' } }),
  volume('an azure disk has no name', { azureDisk: { diskName: '', diskURI: '' } }),
  volume('an azure disk has an empty kind', {
    azureDisk: { diskName: 'd', diskURI: 'https://a', kind: '', cachingMode: '' },
  }),
  volume('a ceph volume has no monitors', { cephfs: { monitors: [] } }),
  volume('a glusterfs volume has no endpoints', { glusterfs: { endpoints: '', path: '' } }),
  volume('a flex volume has no driver', { flexVolume: { driver: '' } }),
]

export const volumesTaken: readonly Trial[] = [
  volume('a volume has no source', { name: 'empty', hostPath: undefined }),
  volume('an empty directory is of an unknown medium', { emptyDir: { medium: 'Tape' } }),
  volume('two files of the downward api have one path', {
    downwardAPI: {
      items: [
        { path: 'a', fieldRef: { fieldPath: 'metadata.name' } },
        { path: 'a', fieldRef: { fieldPath: 'metadata.uid' } },
      ],
    },
  }),
  volume('a projection has an empty source', projected({})),
]
