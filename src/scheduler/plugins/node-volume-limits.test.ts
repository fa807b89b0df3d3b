import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { PersistentVolumeClaims, PersistentVolumes, type Pod, type Volume } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { CSIDrivers, CSINodes, StorageClasses, VolumeAttachments } from '#apis/storage/v1.ts'
import { type KubeObject, keyOf } from '#meta/object.ts'

import { type Handle, isRefusal, type Plugin, type Verdict } from '../framework.ts'
import { NodeInfo } from '../node-info.ts'
import { PodInfo } from '../pod-info.ts'
import { nodeVolumeLimits } from './node-volume-limits.ts'

/** What is stored, by kind: objects by key; `*`: those of every node. */
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

  /** Whether the pod may go to the node `n`, where others are. */
  judge(pod: Pod, others: readonly Pod[] = []): Verdict {
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

  /** Of this driver so many. */
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

describe('volumes of a driver', () => {
  const world = new World().limit(DRIVER, 1).volume('a', csi('a')).volume('b', csi('b')).volume('again', csi('a'))

  it('are as many as the node takes, whoever uses them', () => {
    assert.equal(world.judge(using('a')), undefined)
    assert.deepEqual(world.judge(using('a', 'b')), TOO_MANY)
    assert.deepEqual(world.judge(using('b'), [using('a')]), TOO_MANY)
  })

  it('count once, by whatever claims and pods they are used', () => {
    assert.equal(world.judge(using('a'), [using('a'), using('a')]), undefined)
    assert.equal(world.judge(using('again', 'a'), [using('a')]), undefined)
  })

  it('count when they are attached and nobody uses them, twice where the pod wants one of those', () => {
    const attached = new World().limit(DRIVER, 1).volume('a', csi('a')).volume('b', csi('b'))
    const source = { persistentVolumeName: 'a' }
    attached.put(VolumeAttachments, { metadata: { name: 'x' }, spec: { attacher: DRIVER, nodeName: 'n', source } })
    assert.deepEqual(attached.judge(using('b')), TOO_MANY)
    assert.deepEqual(attached.judge(using('a')), TOO_MANY)
    assert.equal(attached.limit(DRIVER, 2).judge(using('a')), undefined)
    assert.equal(attached.limit(DRIVER, 2).judge(using('b'), [using('a')]), undefined)
  })

  it('are taken to become those of the class while there is none', () => {
    const unbound = new World().limit(DRIVER, 1).claim('a', { storageClassName: 'c' }).claim('b', {})
    unbound.claim('c', { storageClassName: 'c', volumeName: 'gone' })
    unbound.put(StorageClasses, { metadata: { name: 'c' }, provisioner: DRIVER })
    assert.deepEqual(unbound.judge(using('a', 'c')), TOO_MANY)
    assert.equal(unbound.judge(using('a', 'b')), undefined)
    assert.equal(unbound.judge(using('a'), [using('a')]), undefined)
  })

  it('do not count where the node says nothing, or nothing of the driver', () => {
    const silent = new World().volume('a', csi('a')).volume('b', csi('b'))
    assert.equal(silent.judge(using('a', 'b')), undefined)
    assert.equal(silent.limit('other.example.com', 0).judge(using('a', 'b')), undefined)
  })
})

describe('a claim', () => {
  const world = new World().limit(DRIVER, 1).volume('a', csi('a'))

  it('that is missing refuses the pod that comes, not because of one that is there', () => {
    const reasons = ['looking up PVC ns/nope: persistentvolumeclaim "nope" not found']
    assert.deepEqual(world.judge(using('nope')), { code: 'unresolvable', reasons })
    assert.equal(world.judge(using('a'), [using('nope')]), undefined)
  })

  it('that was made for nobody breaks the decision', () => {
    const made = podWith({ ephemeral: {} })
    const reason = 'PVC ns/p-v0 was not created for pod ns/p (pod is not owner)'
    const taken = world.claim('p-v0', {})
    assert.deepEqual(taken.judge(made), { code: 'error', reasons: [reason] })
  })
})

describe('volumes of plugins of old', () => {
  const world = (): World =>
    new World().volume('a', { gcePersistentDisk: { pdName: 'a' } }).volume('b', { gcePersistentDisk: { pdName: 'b' } })

  it('count as those of the driver that does their work', () => {
    const limited = world().limit(GOOGLE, 1)
    assert.equal(limited.judge(using('a')), undefined)
    assert.deepEqual(limited.judge(using('a', 'b')), TOO_MANY)
    assert.deepEqual(limited.judge(podWith(disk('c')), [using('a')]), TOO_MANY)
    // The same disk, described in one pod and claimed by another.
    assert.equal(limited.judge(podWith(disk('a')), [using('a')]), undefined)
  })

  it('count while there is none, by the provisioner of their class', () => {
    const unbound = new World().limit(GOOGLE, 0).claim('a', { storageClassName: 'c' })
    assert.equal(unbound.judge(using('a')), undefined)
    unbound.put(StorageClasses, { metadata: { name: 'c' }, provisioner: 'kubernetes.io/gce-pd' })
    assert.deepEqual(unbound.judge(using('a')), TOO_MANY)
    unbound.put(StorageClasses, { metadata: { name: 'c' }, provisioner: 'kubernetes.io/vsphere-volume' })
    assert.equal(unbound.limit('csi.vsphere.vmware.com', 0).judge(using('a')), undefined)
  })

  it('are nobody’s business where the node says nothing of drivers, or the plugin is none that is counted', () => {
    assert.equal(world().judge(using('a', 'b')), undefined)
    const files = new World().limit('file.csi.azure.com', 0)
    assert.equal(files.judge(podWith({ azureFile: { secretName: 's', shareName: 's' } })), undefined)
  })

  it('that mean nothing to the driver break the decision, where they are described in the pod', () => {
    const limited = new World().limit('ebs.csi.aws.com', 1)
    const odd = { awsElasticBlockStore: { volumeID: 'aws://zone/odd' } }
    const reason =
      'converting volume(v0) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/odd)'
    assert.deepEqual(limited.judge(podWith(odd)), { code: 'error', reasons: [reason] })
    assert.equal(limited.volume('odd', odd).judge(using('odd')), undefined)
    assert.equal(new World().judge(podWith(odd)), undefined)
  })
})

describe('a driver that minds pods where it is not', () => {
  const world = (): World =>
    new World().volume('a', csi('a')).put(CSIDrivers, {
      metadata: { name: DRIVER },
      spec: { preventPodSchedulingIfMissing: true },
    })
  const refusal = { code: 'unschedulable', reasons: [`${DRIVER} CSI driver is not installed on the node`] }

  it('is heeded where the gate is on', () => {
    assert.equal(world().judge(using('a')), undefined)
    assert.deepEqual(world().gate('VolumeLimitScaling').judge(using('a')), refusal)
    assert.deepEqual(world().gate('VolumeLimitScaling').limit('other', 1).judge(using('a')), refusal)
    assert.equal(world().gate('VolumeLimitScaling').limit(DRIVER, 1).judge(using('a')), undefined)
  })
})

describe('a pod that was refused', () => {
  const helps = (kind: unknown, action: string, ...news: readonly [pod: Pod, now?: unknown, old?: unknown]): boolean =>
    (new World().plugin().wakes ?? [])
      .filter(({ on, actions }) => on === kind && (actions as readonly string[]).includes(action))
      .some((wake) => wake.helps?.(...(news as unknown as [Pod, KubeObject, KubeObject])) ?? true)

  it('tries again when somebody with volumes goes, or one is detached that might have been in its way', () => {
    assert.equal(helps('AssignedPod', 'delete', using('a'), undefined, podWith(disk('d'))), true)
    assert.equal(helps('AssignedPod', 'delete', using('a'), undefined, podWith({ emptyDir: {} })), false)
    const detached = { spec: { attacher: GOOGLE } }
    assert.equal(helps(VolumeAttachments, 'delete', podWith(disk('d')), undefined, detached), true)
    assert.equal(helps(VolumeAttachments, 'delete', podWith({ emptyDir: {} }), undefined, detached), false)
    assert.equal(helps(VolumeAttachments, 'delete', using('a'), undefined, detached), true)
  })
})
