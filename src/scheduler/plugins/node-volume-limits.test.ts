import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { PersistentVolumeClaims, PersistentVolumes, type Pod, type Volume } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { CSIDrivers, CSINodes, StorageClasses, VolumeAttachments } from '#apis/storage/v1.ts'
import { type KubeObject, keyOf } from '#meta/object.ts'

import { NodeInfo } from '../cluster/node-info.ts'
import { PodInfo } from '../cluster/pod-info.ts'
import { type Handle, isRefusal, type Plugin, type Verdict } from '../framework/framework.ts'
import { nodeVolumeLimits } from './node-volume-limits.ts'

/** Stored objects by kind and key; `*` is used for every node. */
class World {
  readonly #stored = new Map<unknown, Map<string, KubeObject>>()
  readonly #gates = new Set<string>()

  put(kind: Kind, object: object): this {
    const { namespace, name = '' } = (object as KubeObject).metadata
    const known = this.#stored.get(kind) ?? new Map<string, KubeObject>()
    this.#stored.set(kind, known.set(keyOf(namespace, name), object as KubeObject))
    return this
  }

  gate(name: string): this {
    this.#gates.add(name)
    return this
  }

  plugin(): Plugin {
    const of = (kind: Kind): unknown => ({
      get: (key: string) => this.#stored.get(kind)?.get(key),
      addIndex: () => undefined,
      by: () => [...(this.#stored.get(kind)?.values() ?? [])],
    })
    const handle = { of, isEnabled: (gate: string) => this.#gates.has(gate) } as unknown as Handle
    return nodeVolumeLimits.create(handle, {})
  }

  /** Whether the pod may run on node `n` beside the others. */
  check(pod: Pod, others: readonly Pod[] = []): Verdict {
    const node = new NodeInfo('n', 0)
    for (const other of others) node.add(new PodInfo(other))
    const found = this.plugin().preFilter?.(new PodInfo(pod))
    return isRefusal(found) ? found : found?.filter?.(node)
  }

  claim(name: string, spec: object): this {
    return this.put(PersistentVolumeClaims, { metadata: { namespace: 'ns', name }, spec })
  }

  volume(name: string, spec: object): this {
    return this.put(PersistentVolumes, { metadata: { name }, spec }).claim(name, { volumeName: name })
  }

  /** Sets the limit of a driver. */
  limit(name: string, count: number): this {
    return this.put(CSINodes, { metadata: { name: 'n' }, spec: { drivers: [{ name, allocatable: { count } }] } })
  }
}

let uids = 0
const podWith = (...volumes: readonly Partial<Volume>[]): Pod => ({
  metadata: { namespace: 'ns', name: 'p', uid: `uid-${uids++}` },
  spec: { containers: [], volumes: volumes.map((volume, at) => ({ name: `v${at}`, ...volume })) },
  status: {},
})
const using = (...claims: readonly string[]): Pod =>
  podWith(...claims.map((claimName) => ({ persistentVolumeClaim: { claimName } })))

const DRIVER = 'd.example.com'
const GOOGLE = 'pd.csi.storage.gke.io'
const csi = (volumeHandle: string, driver = DRIVER): object => ({ csi: { driver, volumeHandle } })
const disk = (pdName: string): Partial<Volume> => ({ gcePersistentDisk: { pdName } })
const TOO_MANY = { code: 'unschedulable', reasons: ['node(s) exceed max volume count'] }

describe('limit of CSI volumes per node', () => {
  const world = new World().limit(DRIVER, 1).volume('a', csi('a')).volume('b', csi('b')).volume('again', csi('a'))

  it('includes volumes of all pods on the node', () => {
    assert.equal(world.check(using('a')), undefined)
    assert.deepEqual(world.check(using('a', 'b')), TOO_MANY)
    assert.deepEqual(world.check(using('b'), [using('a')]), TOO_MANY)
  })

  it('counts a volume once, however many claims and pods use it', () => {
    assert.equal(world.check(using('a'), [using('a'), using('a')]), undefined)
    assert.equal(world.check(using('again', 'a'), [using('a')]), undefined)
  })

  it('counts a volume that is attached but unused, and twice if the pod uses it', () => {
    const attached = new World().limit(DRIVER, 1).volume('a', csi('a')).volume('b', csi('b'))
    const source = { persistentVolumeName: 'a' }
    attached.put(VolumeAttachments, { metadata: { name: 'x' }, spec: { attacher: DRIVER, nodeName: 'n', source } })
    assert.deepEqual(attached.check(using('b')), TOO_MANY)
    assert.deepEqual(attached.check(using('a')), TOO_MANY)
    assert.equal(attached.limit(DRIVER, 2).check(using('a')), undefined)
    assert.equal(attached.limit(DRIVER, 2).check(using('b'), [using('a')]), undefined)
  })

  it('counts an unbound claim by its StorageClass', () => {
    const unbound = new World().limit(DRIVER, 1).claim('a', { storageClassName: 'c' }).claim('b', {})
    unbound.claim('c', { storageClassName: 'c', volumeName: 'gone' })
    unbound.put(StorageClasses, { metadata: { name: 'c' }, provisioner: DRIVER })
    assert.deepEqual(unbound.check(using('a', 'c')), TOO_MANY)
    assert.equal(unbound.check(using('a', 'b')), undefined)
    assert.equal(unbound.check(using('a'), [using('a')]), undefined)
  })

  it('does not apply if the node has no CSINode, or if its CSINode does not list the driver', () => {
    const silent = new World().volume('a', csi('a')).volume('b', csi('b'))
    assert.equal(silent.check(using('a', 'b')), undefined)
    assert.equal(silent.limit('other.example.com', 0).check(using('a', 'b')), undefined)
  })
})

describe('PersistentVolumeClaim in NodeVolumeLimits', () => {
  const world = new World().limit(DRIVER, 1).volume('a', csi('a'))

  it('rejects a new pod if it is missing, and is ignored for running pods', () => {
    const reasons = ['looking up PVC ns/nope: persistentvolumeclaim "nope" not found']
    assert.deepEqual(world.check(using('nope')), { code: 'unresolvable', reasons })
    assert.equal(world.check(using('a'), [using('nope')]), undefined)
  })

  it('of an ephemeral volume causes an error if another pod owns it', () => {
    const made = podWith({ ephemeral: {} })
    const reason = 'PVC ns/p-v0 was not created for pod ns/p (pod is not owner)'
    const taken = world.claim('p-v0', {})
    assert.deepEqual(taken.check(made), { code: 'error', reasons: [reason] })
  })
})

describe('limit of in-tree volumes per node', () => {
  const world = (): World =>
    new World().volume('a', { gcePersistentDisk: { pdName: 'a' } }).volume('b', { gcePersistentDisk: { pdName: 'b' } })

  it('counts a volume for the CSI driver that replaces the in-tree plugin', () => {
    const limited = world().limit(GOOGLE, 1)
    assert.equal(limited.check(using('a')), undefined)
    assert.deepEqual(limited.check(using('a', 'b')), TOO_MANY)
    assert.deepEqual(limited.check(podWith(disk('c')), [using('a')]), TOO_MANY)
    // The same disk, inline in one pod and claimed by another.
    assert.equal(limited.check(podWith(disk('a')), [using('a')]), undefined)
  })

  it('counts an unbound claim by the provisioner of its StorageClass', () => {
    const unbound = new World().limit(GOOGLE, 0).claim('a', { storageClassName: 'c' })
    assert.equal(unbound.check(using('a')), undefined)
    unbound.put(StorageClasses, { metadata: { name: 'c' }, provisioner: 'kubernetes.io/gce-pd' })
    assert.deepEqual(unbound.check(using('a')), TOO_MANY)
    unbound.put(StorageClasses, { metadata: { name: 'c' }, provisioner: 'kubernetes.io/vsphere-volume' })
    assert.equal(unbound.limit('csi.vsphere.vmware.com', 0).check(using('a')), undefined)
  })

  it('does not apply if the node has no CSINode, or if the plugin has no limits', () => {
    assert.equal(world().check(using('a', 'b')), undefined)
    const files = new World().limit('file.csi.azure.com', 0)
    assert.equal(files.check(podWith({ azureFile: { secretName: 's', shareName: 's' } })), undefined)
  })

  it('fails with an error if an inline volume cannot be translated', () => {
    const limited = new World().limit('ebs.csi.aws.com', 1)
    const odd = { awsElasticBlockStore: { volumeID: 'aws://zone/odd' } }
    const reason =
      'converting volume(v0) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/odd)'
    assert.deepEqual(limited.check(podWith(odd)), { code: 'error', reasons: [reason] })
    assert.equal(limited.volume('odd', odd).check(using('odd')), undefined)
    assert.equal(new World().check(podWith(odd)), undefined)
  })
})

describe('CSIDriver with preventPodSchedulingIfMissing', () => {
  const world = (): World =>
    new World().volume('a', csi('a')).put(CSIDrivers, {
      metadata: { name: DRIVER },
      spec: { preventPodSchedulingIfMissing: true },
    })
  const refusal = { code: 'unschedulable', reasons: [`${DRIVER} CSI driver is not installed on the node`] }

  it('rejects a pod on a node without the driver if the gate VolumeLimitScaling is on', () => {
    assert.equal(world().check(using('a')), undefined)
    assert.deepEqual(world().gate('VolumeLimitScaling').check(using('a')), refusal)
    assert.deepEqual(world().gate('VolumeLimitScaling').limit('other', 1).check(using('a')), refusal)
    assert.equal(world().gate('VolumeLimitScaling').limit(DRIVER, 1).check(using('a')), undefined)
  })
})

describe('pod rejected by NodeVolumeLimits', () => {
  const queueingHint = (
    kind: unknown,
    action: string,
    ...event: readonly [pod: Pod, now?: unknown, old?: unknown]
  ): boolean =>
    (new World().plugin().eventsToRegister ?? [])
      .filter(({ resource, actions }) => resource === kind && (actions as readonly string[]).includes(action))
      .some((registered) => registered.queueingHint?.(...(event as unknown as [Pod, KubeObject, KubeObject])) ?? true)

  it('is requeued if a pod with volumes is deleted, or a volume of a limited driver is detached', () => {
    assert.equal(queueingHint('AssignedPod', 'delete', using('a'), undefined, podWith(disk('d'))), true)
    assert.equal(queueingHint('AssignedPod', 'delete', using('a'), undefined, podWith({ emptyDir: {} })), false)
    const detached = { spec: { attacher: GOOGLE } }
    assert.equal(queueingHint(VolumeAttachments, 'delete', podWith(disk('d')), undefined, detached), true)
    assert.equal(queueingHint(VolumeAttachments, 'delete', podWith({ emptyDir: {} }), undefined, detached), false)
    assert.equal(queueingHint(VolumeAttachments, 'delete', using('a'), undefined, detached), true)
  })
})
