import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { contextWith, NOW, trialOf } from '../trial.suite.ts'
import { persistentVolume } from './resource.ts'

const trial = trialOf(persistentVolume)
const metadata = { name: 'pv' }
const common = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] }
const volume = (spec: Record<string, unknown>, extra: object = {}): Record<string, unknown> => ({
  metadata: { ...metadata, ...extra },
  spec: { ...common, ...spec },
})
const nfs = { server: 's', path: '/p' }
const csi = { driver: 'd.io', volumeHandle: 'h' }
const selector = (key: string): object => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: ['v'] }] }] },
})

describe('PersistentVolume', () => {
  it('has reclaim policy Retain, mode Filesystem and phase Pending by default', () => {
    const { object, errors } = trial.create(volume({ hostPath: { path: '/d' } }))
    assert.deepEqual(errors, [])
    const { spec, status } = object
    assert.deepEqual(
      [spec.persistentVolumeReclaimPolicy, spec.volumeMode, spec.hostPath],
      ['Retain', 'Filesystem', { path: '/d', type: '' }],
    )
    assert.deepEqual(status, { phase: 'Pending', lastPhaseTransitionTime: NOW })
    const disk = trial.load(volume({ azureDisk: { diskName: 'd', diskURI: 'u', kind: 'Managed' } })).spec.azureDisk
    assert.deepEqual(
      [disk?.kind, disk?.cachingMode, disk?.fsType, disk?.readOnly],
      ['Managed', 'ReadWrite', 'ext4', false],
    )
  })

  const modes = '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"'
  const refusals: [string, Record<string, unknown>, string[]][] = [
    ['a volume without a source', {}, ['spec: Required value: must specify a volume type']],
    ['two sources', { nfs, csi }, ['spec.csi: Forbidden: may not specify more than 1 volume type']],
    [
      'missing access modes and capacity',
      { nfs, accessModes: [], capacity: {} },
      [
        'spec.accessModes: Required value',
        'spec.capacity: Required value',
        'spec.capacity: Unsupported value: null: supported values: "storage"',
      ],
    ],
    [
      'unknown and conflicting access modes',
      { nfs, accessModes: ['x', 'ReadWriteOncePod', 'ReadWriteOnce'] },
      [
        `spec.accessModes: Unsupported value: "x": supported values: ${modes}`,
        'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
      ],
    ],
    [
      'a negative capacity',
      { nfs, capacity: { storage: '-1' } },
      [
        'spec.capacity[storage]: Invalid value: -1: must be a valid resource quantity',
        'spec.capacity[storage]: Invalid value: "-1": must be greater than zero',
      ],
    ],
    [
      'recycling of the path /',
      { hostPath: { path: '/a/..' }, persistentVolumeReclaimPolicy: 'Recycle' },
      [
        'spec.hostPath.path: Invalid value: "/a/..": must not contain \'..\'',
        "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
      ],
    ],
    [
      'a local volume without node affinity',
      { local: { path: '/x' } },
      ['spec.nodeAffinity: Required value: Local volume requires node affinity'],
    ],
    [
      'an empty node affinity',
      { nfs, nodeAffinity: {} },
      ['spec.nodeAffinity.required: Required value: must specify required node constraints'],
    ],
    [
      'a VolumeAttributesClass without a driver',
      { nfs, volumeAttributesClassName: '' },
      [
        'spec.volumeAttributesClassName: Required value: an empty string is disallowed',
        'spec.csi: Required value: has to be specified when using volumeAttributesClassName',
      ],
    ],
    [
      'a secret reference without a namespace',
      { csi: { driver: 'd.io', volumeHandle: '', nodePublishSecretRef: { name: 'n' } } },
      ['spec.csi.volumeHandle: Required value', 'spec.csi.nodePublishSecretRef.namespace: Required value'],
    ],
    ['a disk without a name', { gcePersistentDisk: { pdName: '' } }, ['spec.persistentDisk.pdName: Required value']],
    [
      'an invalid iSCSI initiator',
      { iscsi: { targetPortal: 't'.repeat(70), iqn: 'x', lun: 256, initiatorName: 'iqn.x', chapAuthSession: true } },
      [
        `spec.iscsi.targetportal: Invalid value: "${'t'.repeat(70)}": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.`,
        'spec.iscsi.iqn: Invalid value: "x": must be valid format',
        'spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive',
        'spec.iscsi.secretRef: Required value',
        'spec.iscsi.initiatorname: Invalid value: "iqn.x": must be valid format',
      ],
    ],
    [
      'an unknown policy and mode',
      { nfs, persistentVolumeReclaimPolicy: 'x', volumeMode: 'y' },
      [
        'spec.persistentVolumeReclaimPolicy: Unsupported value: "x": supported values: "Delete", "Recycle", "Retain"',
        'spec.volumeMode: Unsupported value: "y": supported values: "Block", "Filesystem"',
      ],
    ],
  ]
  for (const [what, spec, errors] of refusals) {
    it(`rejects ${what}`, () => assert.deepEqual(trial.create(volume(spec)).errors, errors))
  }

  it('accepts mount options in an annotation only for certain sources', () => {
    const annotations = { 'volume.beta.kubernetes.io/mount-options': 'ro' }
    assert.deepEqual(trial.create(volume({ nfs }, { annotations })).errors, [])
    assert.deepEqual(trial.create(volume({ csi }, { annotations })).errors, [
      'metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount options for this volume type',
    ])
  })

  it('rejects changes of its source', () => {
    const source = 'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation'
    assert.deepEqual(trial.update(volume({ nfs: { ...nfs, path: '/q' } }), volume({ nfs })).errors, [
      `${source}\n  spec.nfs.path: "/p" -> "/q"`,
    ])
    const secret = { controllerExpandSecretRef: { name: 'n', namespace: 'm' } }
    assert.deepEqual(trial.update(volume({ csi: { ...csi, ...secret } }), volume({ csi })).errors, [])
    assert.deepEqual(trial.update(volume({ csi }), volume({ csi: { ...csi, ...secret } })).errors, [
      `${source}\n  spec.csi.controllerExpandSecretRef: {"name":"n","namespace":"m"} -> <unset>`,
    ])
    assert.deepEqual(trial.update(volume({ nfs, volumeMode: 'Block' }), volume({ nfs })).errors, [
      'volumeMode: Invalid value: "Block": field is immutable',
    ])
  })

  it('allows only renames of deprecated labels in its node affinity', () => {
    const old = volume({ nfs, nodeAffinity: selector('beta.kubernetes.io/os') })
    assert.deepEqual(trial.update(volume({ nfs, nodeAffinity: selector('kubernetes.io/os') }), old).errors, [])
    assert.equal(trial.update(volume({ nfs, nodeAffinity: selector('x') }), old).errors.length, 1)
    assert.deepEqual(trial.update(volume({ nfs }), old).errors, [
      'nodeAffinity: Invalid value: null: field is immutable, except for updating from beta label to GA',
    ])
    assert.deepEqual(trial.update(old, volume({ nfs })).errors, [])
  })

  it('cannot lose its VolumeAttributesClass', () => {
    const old = volume({ csi, volumeAttributesClassName: 'a' })
    assert.deepEqual(trial.update(volume({ csi, volumeAttributesClassName: 'b' }), old).errors, [])
    assert.deepEqual(trial.update(volume({ csi }), old).errors, [
      'spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden',
    ])
  })

  it('records the time of a phase change', () => {
    const status = (phase: string, lastPhaseTransitionTime?: string): Record<string, unknown> => ({
      ...volume({ nfs }),
      status: { phase, ...(lastPhaseTransitionTime === undefined ? {} : { lastPhaseTransitionTime }) },
    })
    const then = '2025-01-01T00:00:00Z'
    const time = (next: Record<string, unknown>): string | undefined =>
      trial.update(next, status('Pending', then), 'status').object.status.lastPhaseTransitionTime
    assert.equal(time(status('Pending')), then)
    assert.equal(time(status('Bound')), NOW)
    assert.equal(time(status('Bound', then)), NOW)
    assert.equal(time(status('Bound', '2025-06-01T00:00:00Z')), '2025-06-01T00:00:00Z')
  })

  it('warns of deprecated fields', () => {
    const annotations = { 'volume.beta.kubernetes.io/storage-class': 'c' }
    const { warnings } = trial.create(
      volume(
        {
          cephfs: { monitors: ['m'] },
          persistentVolumeReclaimPolicy: 'Recycle',
          nodeAffinity: selector('beta.kubernetes.io/os'),
        },
        { annotations },
      ),
      contextWith(),
    )
    assert.deepEqual(warnings, [
      'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
      'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
      'spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead',
      'spec.cephfs: deprecated in v1.28, non-functional in v1.31+',
    ])
  })

  it('prints its properties and its claim', () => {
    const sent = volume({
      nfs,
      accessModes: ['ReadWriteMany', 'ReadWriteOnce'],
      claimRef: { namespace: 'n', name: 'c' },
      storageClassName: 'sc',
    })
    const row = trial.cells({ ...sent, status: { phase: 'Bound', reason: 'why' } })
    assert.deepEqual(row, [
      'pv',
      '1Gi',
      'RWO,RWX',
      'Retain',
      'Bound',
      'n/c',
      'sc',
      '<unset>',
      'why',
      '<unknown>',
      'Filesystem',
    ])
    assert.equal(trial.cells(volume({ nfs }, { deletionTimestamp: NOW }))[4], 'Terminating')
  })
})
