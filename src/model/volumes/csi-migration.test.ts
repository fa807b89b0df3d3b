import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PersistentVolume, Volume } from '#apis/core/v1.ts'

import { translatedInline, translatedVolume } from './csi-migration.ts'

const zones = (zone: string): object => ({ labels: { 'topology.kubernetes.io/zone': zone } })

/** In-tree volumes with their drivers and handles, from upstream's translation library. */
const VOLUMES: readonly (readonly [spec: object, handle: string | undefined, metadata?: object])[] = [
  [{ awsElasticBlockStore: { volumeID: 'vol-1' } }, 'ebs.csi.aws.com vol-1'],
  [{ awsElasticBlockStore: { volumeID: 'aws://us-east-1a/vol-2' } }, 'ebs.csi.aws.com vol-2'],
  [{ awsElasticBlockStore: { volumeID: 'aws://us-east-1a/disk' } }, undefined],
  [{ gcePersistentDisk: { pdName: 'd' } }, 'pd.csi.storage.gke.io projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d'],
  [
    { gcePersistentDisk: { pdName: 'd' } },
    'pd.csi.storage.gke.io projects/UNSPECIFIED/zones/eu-a-1/disks/d',
    zones('eu-a-1'),
  ],
  [
    { gcePersistentDisk: { pdName: 'd' } },
    'pd.csi.storage.gke.io projects/UNSPECIFIED/regions/eu-a/disks/d',
    zones('eu-a-1__eu-a-2'),
  ],
  [{ gcePersistentDisk: { pdName: 'd' } }, undefined, zones('eu-a-1__eu-b-2')],
  [{ azureDisk: { diskName: 'd', diskURI: '/sub/d' } }, 'disk.csi.azure.com /sub/d'],
  [{ azureDisk: { diskName: 'd', diskURI: '/sub/d', kind: 'Dedicated' } }, undefined],
  [
    { azureFile: { secretName: 'azure-storage-account-acc-secret', shareName: 's', secretNamespace: 'n' } },
    'file.csi.azure.com #acc#s#pv#n',
  ],
  [
    { azureFile: { secretName: 'other', shareName: 's' }, claimRef: { namespace: 'c' } },
    'file.csi.azure.com #other#s#pv#c',
  ],
  [{ azureFile: { secretName: 'other', shareName: 's', secretNamespace: null } }, undefined],
  [{ cinder: { volumeID: 'c' } }, 'cinder.csi.openstack.org c'],
  [{ vsphereVolume: { volumePath: '[ds] a.vmdk' } }, 'csi.vsphere.vmware.com [ds] a.vmdk'],
  [{ portworxVolume: { volumeID: 'p' } }, 'pxd.portworx.com p'],
  [{ nfs: { server: 's', path: '/' } }, undefined],
]

describe('CSI migration of in-tree volumes', () => {
  it('yields CSI driver and volume handle', () => {
    for (const [spec, expected, metadata = {}] of VOLUMES) {
      const volume = { metadata: { name: 'pv', ...metadata }, spec } as PersistentVolume
      const csi = translatedVolume(volume)?.spec.csi
      assert.equal(csi && `${csi.driver} ${csi.volumeHandle}`, expected)
    }
  })

  it('yields a complete PersistentVolume for a volume in a pod spec', () => {
    const rows: readonly (readonly [volume: Volume, title: string, spec: object])[] = [
      [
        { name: 'v', awsElasticBlockStore: { volumeID: 'vol-1', fsType: 'ext4', readOnly: true, partition: 2 } },
        'ebs.csi.aws.com-vol-1',
        {
          csi: {
            driver: 'ebs.csi.aws.com',
            volumeHandle: 'vol-1',
            fsType: 'ext4',
            readOnly: true,
            volumeAttributes: { partition: '2' },
          },
          accessModes: ['ReadWriteOnce'],
        },
      ],
      [
        { name: 'v', gcePersistentDisk: { pdName: 'd', readOnly: true } },
        'pd.csi.storage.gke.io-d',
        {
          csi: {
            driver: 'pd.csi.storage.gke.io',
            volumeHandle: 'projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d',
            readOnly: true,
            volumeAttributes: { partition: '' },
          },
          accessModes: ['ReadOnlyMany'],
          volumeMode: 'Filesystem',
        },
      ],
      [
        { name: 'v', azureFile: { secretName: 'k', shareName: 's' } },
        '#k#s#v#pods',
        {
          csi: {
            driver: 'file.csi.azure.com',
            volumeHandle: '#k#s#v#pods',
            volumeAttributes: { sharename: 's' },
            nodeStageSecretRef: { name: 'k', namespace: 'pods' },
          },
          accessModes: ['ReadWriteMany'],
        },
      ],
    ]
    for (const [volume, title, spec] of rows) {
      const found = translatedInline(volume, 'pods')
      assert.deepEqual([found?.title, found?.spec], [title, spec])
    }
    assert.equal(translatedInline({ name: 'v', emptyDir: {} }, 'pods'), undefined)
  })
})
