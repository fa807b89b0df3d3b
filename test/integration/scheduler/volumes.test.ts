/** Tests pods with volumes on a complete API server with a virtual clock; the test acts as binder and provisioner. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  type PodSpec,
  Pods,
} from '#apis/core/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import { CSIDrivers, CSINodes, CSIStorageCapacities, StorageClasses } from '#apis/storage/v1.ts'

import { asking, type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

let cluster: ClusterUnderTest

beforeEach(async () => {
  cluster = await startCluster()
})

afterEach(() => cluster[Symbol.asyncDispose]())

const using = (...claims: readonly string[]): Pick<PodSpec, 'volumes' | 'containers'> => ({
  ...asking({ cpu: '1' }),
  volumes: claims.map((claimName, at) => ({ name: `v${at}`, persistentVolumeClaim: { claimName } })),
})

function volume(name: string, more: Partial<PersistentVolume['spec']> = {}, labels = {}): Promise<PersistentVolume> {
  return cluster.client.create(PersistentVolumes, {
    metadata: { name, labels },
    spec: {
      capacity: { storage: '5Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver: 'd.example.com', volumeHandle: name },
      ...more,
    },
  })
}

const onlyOn = (...names: readonly string[]): Partial<PersistentVolume['spec']> => ({
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [
        { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [...names] }] },
      ],
    },
  },
})

function claim(name: string, more: Partial<PersistentVolumeClaim['spec']> = {}): Promise<PersistentVolumeClaim> {
  return cluster.client.create(PersistentVolumeClaims, {
    metadata: { namespace, name },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: '',
      ...more,
    },
  })
}

/** As the binder leaves it. */
async function bind(name: string, to: string): Promise<void> {
  const annotations = { 'pv.kubernetes.io/bind-completed': 'yes' }
  const value = { metadata: { annotations }, spec: { volumeName: to } }
  await cluster.client.patch(PersistentVolumeClaims, { namespace, name }, { type: 'merge', value })
  await cluster.client.patch(
    PersistentVolumeClaims,
    { namespace, name, subresource: 'status' },
    { type: 'merge', value: { status: { phase: 'Bound' } } },
  )
}

async function bound(name: string, more: Partial<PersistentVolume['spec']> = {}, labels = {}): Promise<void> {
  await volume(name, more, labels)
  await claim(name, { accessModes: more.accessModes ?? ['ReadWriteOnce'] })
  await bind(name, name)
}

const late = (name: string, provisioner = 'kubernetes.io/no-provisioner', more = {}) =>
  cluster.client.create(StorageClasses, {
    metadata: { name },
    provisioner,
    volumeBindingMode: 'WaitForFirstConsumer',
    ...more,
  })

const available = (name: string) =>
  cluster.client.patch(
    PersistentVolumes,
    { name, subresource: 'status' },
    { type: 'merge', value: { status: { phase: 'Available' } } },
  )

describe('pod with PersistentVolumeClaims', () => {
  it('waits for missing claims, and its condition reports them', async () => {
    await cluster.node('n1')
    await cluster.pod('p', using('nope'))
    assert.equal(
      await cluster.whyNot('p'),
      '0/1 nodes are available: persistentvolumeclaim "nope" not found. not found',
    )
    await claim('nope')
    await cluster.settle(2000)
    assert.match(
      await cluster.whyNot('p'),
      /^0\/1 nodes are available: pod has unbound immediate PersistentVolumeClaims\. not found$/,
    )
    await volume('v')
    await bind('nope', 'v')
    await cluster.settle(5000)
    assert.equal(await cluster.placeOf('p'), 'n1')
  })

  it('waits for the claim of its ephemeral volume', async () => {
    await cluster.node('n1')
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
    await cluster.pod('eph', {
      ...asking({ cpu: '1' }),
      volumes: [{ name: 'e', ephemeral: { volumeClaimTemplate: { metadata: {}, spec } } }],
    })
    assert.equal(
      await cluster.whyNot('eph'),
      '0/1 nodes are available: waiting for ephemeral volume controller to create the persistentvolumeclaim "eph-e". not found',
    )
    await claim('eph-e')
    await cluster.settle(2000)
    assert.equal(
      await cluster.whyNot('eph'),
      '0/1 nodes are available: PVC default/eph-e was not created for pod default/eph (pod is not owner). not found',
    )
  })

  it('is placed on a node that reaches its volume', async () => {
    await cluster.node('n1')
    await cluster.node('n2')
    await bound('v', onlyOn('n2'))
    await cluster.pod('p', using('v'))
    assert.equal(await cluster.placeOf('p'), 'n2')
    await bound('w', onlyOn('n3'))
    await cluster.pod('q', using('w'))
    assert.match(
      await cluster.whyNot('q'),
      /^0\/2 nodes are available: 2 node\(s\) didn't match PersistentVolume's node affinity\. /,
    )
  })

  it('is placed in the zone of its volume', async () => {
    await cluster.node('n1', { labels: { 'topology.kubernetes.io/zone': 'a' } })
    await cluster.node('n2', { labels: { 'topology.kubernetes.io/zone': 'b' } })
    await bound('v', {}, { 'failure-domain.beta.kubernetes.io/zone': 'b__c' })
    await cluster.pod('p', using('v'))
    assert.equal(await cluster.placeOf('p'), 'n2')
    await bound('w', {}, { 'topology.kubernetes.io/zone': 'd' })
    await cluster.pod('q', using('w'))
    assert.match(await cluster.whyNot('q'), /^0\/2 nodes are available: 2 node\(s\) had no available volume zone\. /)
  })

  it('has a ReadWriteOncePod claim exclusively, or preempts the pod that uses it', async () => {
    await cluster.client.create(PriorityClasses, { metadata: { name: 'high' }, value: 1000 })
    await cluster.node('n1')
    await cluster.node('n2')
    await bound('v', { accessModes: ['ReadWriteOncePod'] })
    await cluster.pod('a', using('v'))
    const place = await cluster.placeOf('a')
    await cluster.pod('b', using('v'))
    assert.equal(
      await cluster.whyNot('b'),
      '0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.',
    )
    await cluster.pod('c', { ...using('v'), priorityClassName: 'high' })
    await cluster.settle()
    const { status } = await cluster.client.get(Pods, { namespace, name: 'c' })
    assert.equal(status.nominatedNodeName, place)
  })

  it('avoids nodes at their volume limit', async () => {
    await cluster.node('n1')
    const drivers = [{ name: 'd.example.com', nodeID: 'x', topologyKeys: null, allocatable: { count: 1 } }]
    await cluster.client.create(CSINodes, { metadata: { name: 'n1' }, spec: { drivers } })
    await bound('v')
    await bound('w')
    await cluster.pod('a', using('v'))
    assert.equal(await cluster.placeOf('a'), 'n1')
    await cluster.pod('b', using('w'))
    assert.match(await cluster.whyNot('b'), /^0\/1 nodes are available: 1 node\(s\) exceed max volume count\. /)
    await cluster.pod('c', using('v'))
    assert.equal(await cluster.placeOf('c'), 'n1', 'what is there is not counted twice')
    await cluster.client.patch(
      CSINodes,
      { name: 'n1' },
      { type: 'merge', value: { spec: { drivers: drivers.map((one) => ({ ...one, allocatable: { count: 2 } })) } } },
    )
    await cluster.settle(3000)
    assert.equal(await cluster.placeOf('b'), 'n1')
  })
})

describe('PersistentVolumeClaim with WaitForFirstConsumer', () => {
  it('is bound to the smallest reachable volume before the pod', async () => {
    await late('local')
    await cluster.node('n1')
    await cluster.node('n2')
    for (const [name, node, storage] of [
      ['big', 'n2', '9Gi'],
      ['small', 'n2', '2Gi'],
      ['tiny', 'n1', '1Mi'],
    ] as const) {
      await volume(name, { ...onlyOn(node), capacity: { storage }, storageClassName: 'local' })
      await available(name)
    }
    await claim('c', { storageClassName: 'local' })
    await cluster.pod('p', using('c'))
    await cluster.settle()
    const pod = await cluster.client.get(Pods, { namespace, name: 'p' })
    assert.equal(pod.spec.nodeName, undefined)
    assert.equal(pod.status.nominatedNodeName, 'n2')
    assert.equal(pod.status.conditions?.length ?? 0, 0)
    const { metadata, spec } = await cluster.client.get(PersistentVolumes, { name: 'small' })
    assert.equal(spec.claimRef?.name, 'c')
    assert.equal(metadata.annotations?.['pv.kubernetes.io/bound-by-controller'], 'yes')
    await bind('c', 'small')
    assert.equal(await cluster.placeOf('p'), 'n2')
  })

  it('gets no volume that is assumed for another claim', async () => {
    await late('local')
    await cluster.node('n1')
    await volume('only', { ...onlyOn('n1'), storageClassName: 'local' })
    await available('only')
    await claim('c', { storageClassName: 'local' })
    await claim('d', { storageClassName: 'local' })
    await cluster.pod('p', using('c'))
    await cluster.pod('q', using('d'))
    await cluster.settle()
    assert.match(
      await cluster.whyNot('q'),
      /^0\/1 nodes are available: 1 node\(s\) didn't find available persistent volumes to bind\. /,
    )
  })

  it('gets the selected-node annotation for its provisioner, and another node after a failure', async () => {
    await late('made', 'd.example.com', {
      allowedTopologies: [{ matchLabelExpressions: [{ key: 'kubernetes.io/hostname', values: ['n2'] }] }],
    })
    await cluster.node('n1')
    await cluster.node('n2')
    await claim('c', { storageClassName: 'made' })
    await cluster.pod('p', using('c'))
    const selected = async (): Promise<string | undefined> => {
      await cluster.settle()
      const { metadata } = await cluster.client.get(PersistentVolumeClaims, { namespace, name: 'c' })
      return metadata.annotations?.['volume.kubernetes.io/selected-node']
    }
    assert.equal(await selected(), 'n2')
    const annotations = { 'volume.kubernetes.io/selected-node': null, other: 'x' }
    await cluster.client.patch(
      PersistentVolumeClaims,
      { namespace, name: 'c' },
      { type: 'merge', value: { metadata: { annotations } } },
    )
    await cluster.settle()
    assert.deepEqual((await cluster.events('p')).slice(0, 1), [
      'FailedScheduling: running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "c"',
    ])
    await cluster.settle(3000)
    assert.equal(await selected(), 'n2')
    await volume('v', { storageClassName: 'made' })
    await bind('c', 'v')
    assert.equal(await cluster.placeOf('p'), 'n2')
  })

  it('delays the binding of its pod until a timeout', async () => {
    await late('made', 'd.example.com')
    await cluster.node('n1')
    await claim('c', { storageClassName: 'made' })
    await cluster.pod('p', using('c'))
    await cluster.settle(601_000)
    const [first] = await cluster.events('p')
    assert.match(
      first ?? '',
      /^FailedScheduling: running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded/,
    )
  })

  it('needs storage capacity on the node if its driver reports that', async () => {
    await late('made', 'd.example.com')
    await cluster.client.create(CSIDrivers, { metadata: { name: 'd.example.com' }, spec: { storageCapacity: true } })
    await cluster.node('n1')
    await claim('c', { storageClassName: 'made' })
    await cluster.pod('p', using('c'))
    assert.match(
      await cluster.whyNot('p'),
      /^0\/1 nodes are available: 1 node\(s\) did not have enough free storage\. /,
    )
    await cluster.client.create(CSIStorageCapacities, {
      metadata: { namespace, name: 'pool' },
      storageClassName: 'made',
      nodeTopology: {},
      capacity: '10Gi',
    })
    await cluster.settle(3000)
    const { metadata } = await cluster.client.get(PersistentVolumeClaims, { namespace, name: 'c' })
    assert.equal(metadata.annotations?.['volume.kubernetes.io/selected-node'], 'n1')
  })
})
