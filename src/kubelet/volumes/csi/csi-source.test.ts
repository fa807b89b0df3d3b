import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#apis/core/v1.ts'
import type { CSIDriver } from '#apis/storage/v1.ts'

import { highestVersion } from './csi-drivers.ts'
import { grownClaim, growthOf } from './csi-growth.ts'
import { attachmentName, csiPaths, inlineHandle } from './csi-names.ts'
import { CAPABILITY } from './csi-node-service.ts'
import {
  capabilityOf,
  checkLifecycle,
  type CsiSource,
  inlineSource,
  persistentSource,
  takesGroup,
} from './csi-source.ts'
import { nodeIdsWith, withDriver } from './node-drivers.ts'

const POD = { metadata: { namespace: 'ns', name: 'p', uid: 'u1' }, spec: { containers: [] } } as unknown as Pod

function persistent(spec: Partial<PersistentVolume['spec']> = {}): CsiSource {
  const csi = { driver: 'd', volumeHandle: 'h', fsType: 'ext4' }
  const object = { metadata: { name: 'pv' }, spec: { csi, accessModes: ['ReadWriteOnce'], ...spec }, status: {} }
  return persistentSource({ object, readOnly: false })
}

const driverWith = (spec: CSIDriver['spec']): CSIDriver => ({ metadata: { name: 'd' }, spec })

test('names and paths of CSI volumes equal upstream’s', () => {
  assert.equal(
    attachmentName('vol', 'driver', 'node'),
    'csi-4af94228ee9d441e02225497584706bfc975bdb4d2db3571d8c5db2668c1e969',
  )
  assert.match(inlineHandle('u1', 'v'), /^csi-[0-9a-f]{64}$/)
  const paths = csiPaths('/k')
  assert.equal(
    paths.device('d', ''),
    '/k/plugins/kubernetes.io/csi/d/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  )
  assert.equal(paths.blockPublish('pv', 'u1'), '/k/plugins/kubernetes.io/csi/volumeDevices/publish/pv/u1')
})

test('access modes of CSI volumes distinguish single writers only if the driver has the capability', () => {
  const modeOf = (mode: string, ...capabilities: number[]): number | undefined =>
    capabilityOf(persistent({ accessModes: [mode] }), new Set(capabilities)).accessMode?.mode
  const finer = CAPABILITY.singleNodeMultiWriter
  assert.deepEqual(
    ['ReadWriteOnce', 'ReadWriteOncePod', 'ReadOnlyMany', 'ReadWriteMany'].map((mode) => [
      modeOf(mode),
      modeOf(mode, finer),
    ]),
    [
      [1, 7],
      [1, 6],
      [3, 3],
      [5, 5],
    ],
  )
  assert.deepEqual(capabilityOf(persistent({ volumeMode: 'Block' }), new Set()).block, {})
  const { mount } = capabilityOf(persistent({ mountOptions: ['noatime'] }), new Set(), 7)
  assert.deepEqual(mount, { fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '7' })
})

test('an ephemeral CSI volume needs a driver that supports it', () => {
  const inline = inlineSource(POD, { name: 'v', csi: { driver: 'd' } })
  assert.throws(
    () => checkLifecycle(inline, undefined),
    /"Ephemeral" not supported by driver d \(no CSIDriver object\)/,
  )
  const only = driverWith({ volumeLifecycleModes: ['Persistent'] })
  assert.throws(() => checkLifecycle(inline, only), /\(only supports \["Persistent"\]\)/)
  checkLifecycle(inline, driverWith({ volumeLifecycleModes: ['Persistent', 'Ephemeral'] }))
  checkLifecycle(persistent(), undefined)
})

test('fsGroupPolicy of a CSIDriver decides whether the kubelet changes the group of files', () => {
  const file = driverWith({ fsGroupPolicy: 'File' })
  const none = driverWith({ fsGroupPolicy: 'None' })
  const plain = persistent({ csi: { driver: 'd', volumeHandle: 'h' } })
  const many = persistent({ accessModes: ['ReadWriteMany'] })
  const cases: [CsiSource, number | undefined, CSIDriver | undefined, boolean][] = [
    [persistent(), 1, undefined, true],
    [persistent(), undefined, undefined, false],
    [persistent(), 1, none, false],
    [plain, 1, undefined, false],
    [plain, 1, file, true],
    [many, 1, undefined, false],
    [many, 1, file, true],
    [{ ...persistent(), readOnly: true }, 1, file, false],
  ]
  for (const [source, group, driver, expected] of cases) assert.equal(takesGroup(source, group, driver), expected)
})

test('growthOf() returns the new size if the PersistentVolume is larger than the claim’s capacity', () => {
  const claim = {
    metadata: { name: 'c' },
    spec: {},
    status: {
      capacity: { storage: '1Gi' },
      conditions: [{ type: 'FileSystemResizePending', status: 'True' }],
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
    },
  } as unknown as PersistentVolumeClaim
  const sized = (storage: string): CsiSource => ({ ...persistent({ capacity: { storage } }), claim })
  assert.equal(growthOf(sized('1Gi')), undefined)
  assert.equal(growthOf(sized('1024Mi')), undefined)
  assert.equal(growthOf(sized('2Gi')), 2 ** 31)
  assert.equal(growthOf({ ...sized('2Gi'), readOnly: true }), undefined)
  assert.equal(growthOf(persistent({ capacity: { storage: '2Gi' } })), undefined)
  assert.deepEqual(grownClaim(claim, '2Gi'), {
    status: { capacity: { storage: '2Gi' }, conditions: null, allocatedResourceStatuses: { storage: null } },
  })
})

test('highestVersion() of a CSI driver returns the highest version 1.x', () => {
  assert.deepEqual(highestVersion(['0.3.0', '1.2.0', 'v1.10.0', '2.0.0']), [1, 10, 0])
  assert.equal(highestVersion(['0.3.0', '2.0.0', 'x']), undefined)
})

test('withDriver() keeps one current entry per driver in CSINode', () => {
  const driver = { name: 'd', nodeId: 'n', maxVolumes: 3, topology: new Map([['zone', 'a']]) }
  const there = [{ name: 'd', nodeID: 'n', topologyKeys: ['zone'], allocatable: { count: 3 } }]
  assert.deepEqual(withDriver([], driver), there)
  assert.equal(withDriver(there, driver), undefined)
  assert.deepEqual(withDriver(there, { ...driver, maxVolumes: 0 }), [
    { name: 'd', nodeID: 'n', topologyKeys: ['zone'] },
  ])
  assert.equal(nodeIdsWith('{"b":"1"}', 'a', '2'), '{"a":"2","b":"1"}')
  assert.equal(nodeIdsWith('{"b":"1"}', 'b', undefined), null)
})
