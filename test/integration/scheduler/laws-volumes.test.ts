/**
 * Tests invariants of pods with volumes on a complete API server with a virtual clock. Faults: bindings fail,
 * schedulers restart, nodes come and go, two profiles compete.
 *
 * No volume is bound to two claims. No pod runs where its volumes are unreachable. No node exceeds its volume limit.
 * Finally every schedulable pod is scheduled.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import {
  type Node,
  Nodes,
  type PersistentVolume,
  type PersistentVolumeClaim,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  Pods,
} from '#apis/core/v1.ts'
import { CSIDrivers, CSINodes, CSIStorageCapacities, StorageClasses } from '#apis/storage/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { SELECTED_NODE } from '#model/volumes/binding.ts'
import { DEFAULT_PROFILE } from '#scheduler/profiles.ts'

import { asking } from './cluster-under-test.ts'
import { type Failure, FlakyScheduler } from './flaky-scheduler.ts'

const namespace = 'default'
const DRIVER = 'd.example.com'
const HOST = 'kubernetes.io/hostname'
const ZONE = 'topology.kubernetes.io/zone'
/** Volumes of the driver on one node, and GiB of the largest that can be made in each zone. */
const LIMIT = 2
const ROOM = { a: 3, b: 6 } as const
const PROFILES = ['default-scheduler', 'other'] as const

interface Wanted {
  readonly profile: (typeof PROFILES)[number]
  /** `local`: one of those that are there. `made`: one is made where the pod goes. `zoned`: one that it has, which is in a zone. */
  readonly sort: 'local' | 'made' | 'zoned'
  readonly size: number
}

type Step =
  | { readonly do: 'node'; readonly zone: keyof typeof ROOM }
  | { readonly do: 'volume'; readonly which: number; readonly size: number }
  | { readonly do: 'delete' | 'lose node'; readonly which: number }
  | {
      readonly do: 'pods'
      readonly pods: readonly Wanted[]
      readonly failures: readonly Failure[]
      readonly kill: boolean
    }

const size = fc.integer({ min: 1, max: 6 })
const wanted: fc.Arbitrary<Wanted> = fc.record({
  profile: fc.constantFrom(...PROFILES),
  sort: fc.constantFrom('local', 'made', 'zoned'),
  size,
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('node'), zone: fc.constantFrom('a', 'b') }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('volume'), which: fc.nat(), size }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('delete', 'lose node'), which: fc.nat() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('pods'),
      pods: fc.array(wanted, { minLength: 1, maxLength: 4 }),
      failures: fc.array(fc.constantFrom<Failure>('before', 'after', 'not at all'), { maxLength: 2 }),
      kill: fc.boolean(),
    }),
  },
)

interface State {
  readonly nodes: readonly Node[]
  readonly pods: readonly Pod[]
  readonly claims: ReadonlyMap<string, PersistentVolumeClaim>
  readonly volumes: ReadonlyMap<string, PersistentVolume>
}

const nameOf = ({ metadata }: { readonly metadata: { readonly name?: string } }): string => metadata.name ?? ''
const gib = (text = '0Gi'): number => Number(text.replace('Gi', ''))
const inZone = (key: string, value: string): PersistentVolume['spec']['nodeAffinity'] => ({
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'In', values: [value] }] }] },
})

class World {
  readonly #scheduler: FlakyScheduler
  #made = 0

  static async start(): Promise<World> {
    const profiles = PROFILES.map((name) => ({ ...DEFAULT_PROFILE, name }))
    const world = new World(await FlakyScheduler.start({ off: ['StorageObjectInUseProtection'], profiles }))
    await world.#setUp()
    return world
  }

  private constructor(scheduler: FlakyScheduler) {
    this.#scheduler = scheduler
  }

  stop(): Promise<void> {
    return this.#scheduler.stop()
  }

  get #client(): ApiClient {
    return this.#scheduler.client
  }

  async #setUp(): Promise<void> {
    const volumeBindingMode = 'WaitForFirstConsumer'
    const none = 'kubernetes.io/no-provisioner'
    for (const [name, provisioner] of Object.entries({ local: none, zoned: none, made: DRIVER }))
      await this.#client.create(StorageClasses, { metadata: { name }, provisioner, volumeBindingMode })
    await this.#client.create(CSIDrivers, { metadata: { name: DRIVER }, spec: { storageCapacity: true } })
    for (const [zone, room] of Object.entries(ROOM))
      await this.#client.create(CSIStorageCapacities, {
        metadata: { namespace, name: zone },
        storageClassName: 'made',
        nodeTopology: { matchLabels: { zone } },
        capacity: `${room}Gi`,
      })
  }

  async state(): Promise<State> {
    const { items: nodes } = await this.#client.list(Nodes)
    const { items: pods } = await this.#client.list(Pods, { namespace })
    const { items: claims } = await this.#client.list(PersistentVolumeClaims, { namespace })
    const { items: volumes } = await this.#client.list(PersistentVolumes)
    const byName = <T extends { readonly metadata: object }>(items: readonly T[]): Map<string, T> =>
      new Map(items.map((one) => [nameOf(one), one]))
    return { nodes, pods, claims: byName(claims), volumes: byName(volumes) }
  }

  async take(step: Step): Promise<void> {
    const { nodes, pods } = await this.state()
    if (step.do === 'node') await this.#addNode(step.zone)
    else if (step.do === 'pods') await this.#addPods(step)
    else if (step.do === 'delete') await this.#deletePods(pods.slice(step.which % Math.max(1, pods.length)).slice(0, 1))
    else {
      const node = nodes[step.which % Math.max(1, nodes.length)]
      if (node === undefined) return
      if (step.do === 'volume') await this.#addVolume('local', step.size, inZone(HOST, nameOf(node)))
      else await this.#loseNode(node)
    }
    await this.rest(3000)
  }

  async #deletePods(pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) await this.#client.delete(Pods, { namespace, name: nameOf(pod) }, { gracePeriodSeconds: 0 })
  }

  /**
   * Also deletes the node's pods, as the pod garbage collector does. Pods whose binding is under way are deleted
   * later.
   */
  async #loseNode(node: Node): Promise<void> {
    await this.#client.delete(Nodes, { name: nameOf(node) })
    await this.#client.delete(CSINodes, { name: nameOf(node) })
    await this.#deletePods(on(await this.state(), node))
  }

  /** The binder and the provisioner do what is theirs, and everybody has time to try again. */
  async rest(ms: number): Promise<void> {
    do await this.#scheduler.clock.advance(ms)
    while ((await this.#serve()) || (await this.#collectLost()))
    await this.#scheduler.clock.advance(ms)
  }

  /** Pods that were bound to a node which had just gone. */
  async #collectLost(): Promise<boolean> {
    const { nodes, pods } = await this.state()
    const names = new Set(['', ...nodes.map(nameOf)])
    const lost = pods.filter(({ spec }) => !names.has(spec.nodeName ?? ''))
    await this.#deletePods(lost)
    return lost.length > 0
  }

  async #addNode(zone: string): Promise<void> {
    const name = `n${this.#made++}`
    const drivers = [{ name: DRIVER, nodeID: name, topologyKeys: null, allocatable: { count: LIMIT } }]
    await this.#client.create(CSINodes, { metadata: { name }, spec: { drivers } })
    await this.#client.create(Nodes, { metadata: { name, labels: { [HOST]: name, zone, [ZONE]: zone } }, spec: {} })
    const allocatable = { cpu: '4', pods: '3' }
    const value = { status: { allocatable, capacity: allocatable } }
    await this.#client.patch(Nodes, { name, subresource: 'status' }, { type: 'merge', value })
  }

  async #addVolume(
    storageClassName: Wanted['sort'],
    of: number,
    nodeAffinity: PersistentVolume['spec']['nodeAffinity'],
  ): Promise<PersistentVolume> {
    const name = `v${this.#made++}`
    // Of old, before volumes had an affinity, labels said where they are.
    const labels = storageClassName === 'zoned' ? { [ZONE]: of % 2 === 0 ? 'a' : 'b' } : undefined
    const source = {
      made: { csi: { driver: DRIVER, volumeHandle: name } },
      local: { local: { path: '/d' } },
      zoned: { hostPath: { path: '/d' } },
    }[storageClassName]
    const spec = { capacity: { storage: `${of}Gi` }, accessModes: ['ReadWriteOnce'], storageClassName, ...source }
    await this.#client.create(PersistentVolumes, {
      metadata: { name, ...(labels !== undefined && { labels }) },
      spec: { ...spec, ...(nodeAffinity !== undefined && { nodeAffinity }) },
    })
    const value = { status: { phase: 'Available' } }
    return this.#client.patch(PersistentVolumes, { name, subresource: 'status' }, { type: 'merge', value })
  }

  async #addPods({ pods, failures, kill }: Step & { do: 'pods' }): Promise<void> {
    this.#scheduler.fail(failures)
    for (const { profile: schedulerName, sort: storageClassName, size: of } of pods) {
      const name = `pod${this.#made++}`
      const resources = { requests: { storage: `${of}Gi` } }
      const spec = { accessModes: ['ReadWriteOnce'], storageClassName, resources }
      const { metadata } = await this.#client.create(PersistentVolumeClaims, { metadata: { namespace, name }, spec })
      if (storageClassName === 'zoned')
        await this.#bind(name, metadata.uid ?? '', nameOf(await this.#addVolume('zoned', of, undefined)))
      const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: name } }]
      await this.#client.create(Pods, {
        metadata: { namespace, name },
        spec: { ...asking({ cpu: '1' }), schedulerName, volumes },
      })
    }
    if (kill) await this.#scheduler.kill()
  }

  /** Whether there was something to do. */
  async #serve(): Promise<boolean> {
    const { nodes, claims, volumes } = await this.state()
    let hasServed = false
    for (const [name, { metadata, spec }] of claims) {
      if ((spec.volumeName ?? '') !== '') continue
      const promised = [...volumes.values()].find(({ spec: { claimRef } }) => claimRef?.uid === metadata.uid)
      const selected = metadata.annotations?.[SELECTED_NODE]
      const zone = nodes.find((one) => nameOf(one) === selected)?.metadata.labels?.['zone']
      if (promised === undefined && zone === undefined) {
        // A provisioner that cannot make a volume for a node asks for another one.
        const value = { metadata: { annotations: { [SELECTED_NODE]: null } } }
        if (selected !== undefined)
          await this.#client.patch(PersistentVolumeClaims, { namespace, name }, { type: 'merge', value })
        continue
      }
      const volume =
        promised ??
        (await this.#addVolume('made', gib(spec.resources?.requests?.['storage']), inZone('zone', zone ?? '')))
      await this.#bind(name, metadata.uid ?? '', nameOf(volume))
      hasServed = true
    }
    return hasServed
  }

  async #bind(name: string, uid: string, volumeName: string): Promise<void> {
    const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid }
    const patch = (value: object): { type: 'merge'; value: object } => ({ type: 'merge', value })
    await this.#client.patch(PersistentVolumes, { name: volumeName }, patch({ spec: { claimRef } }))
    const metadata = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } }
    await this.#client.patch(PersistentVolumeClaims, { namespace, name }, patch({ metadata, spec: { volumeName } }))
    const bound = patch({ status: { phase: 'Bound' } })
    await this.#client.patch(PersistentVolumeClaims, { namespace, name, subresource: 'status' }, bound)
  }
}

const on = ({ pods }: State, node: Node): Pod[] => pods.filter(({ spec }) => spec.nodeName === nameOf(node))
/** A pod has one claim, which is called as it is. */
const volumeOf = ({ claims, volumes }: State, pod: Pod): PersistentVolume | undefined =>
  volumes.get(claims.get(nameOf(pod))?.spec.volumeName ?? '')
const isReachable = ({ metadata, spec }: PersistentVolume, { metadata: { labels } }: Node): boolean => {
  const zone = metadata.labels?.[ZONE]
  if (zone !== undefined) return labels?.[ZONE] === zone
  const [rule] = spec.nodeAffinity?.required?.nodeSelectorTerms[0]?.matchExpressions ?? []
  return rule !== undefined && rule.values?.includes(labels?.[rule.key] ?? '') === true
}
const isOfDriver = (state: State, pod: Pod): boolean => state.claims.get(nameOf(pod))?.spec.storageClassName === 'made'

function checkPlaces(state: State): void {
  const given = [...state.claims.values()].flatMap(({ spec: { volumeName = '' } }) =>
    volumeName === '' ? [] : [volumeName],
  )
  assert.equal(new Set(given).size, given.length, 'a volume has two claims')
  for (const node of state.nodes) {
    const there = on(state, node)
    for (const pod of there) {
      const volume = volumeOf(state, pod)
      assert.ok(volume !== undefined && isReachable(volume, node), `${nameOf(pod)} is where its volume is not`)
      const asked = gib(state.claims.get(nameOf(pod))?.spec.resources?.requests?.['storage'])
      const most = isOfDriver(state, pod)
        ? ROOM[node.metadata.labels?.['zone'] as 'a' | 'b']
        : gib(volume.spec.capacity?.['storage'])
      assert.ok(asked <= most, `the volume of ${nameOf(pod)} is too small`)
    }
    const ofDriver = there.filter((pod) => isOfDriver(state, pod)).length
    assert.ok(ofDriver <= LIMIT && there.length <= 3, `${nameOf(node)} has more than it can have`)
  }
}

/** Whether the pod could have its volume on the node. */
function isServed(state: State, pod: Pod, node: Node): boolean {
  const bound = volumeOf(state, pod)
  const asked = gib(state.claims.get(nameOf(pod))?.spec.resources?.requests?.['storage'])
  if (isOfDriver(state, pod)) {
    if (on(state, node).filter((one) => isOfDriver(state, one)).length >= LIMIT) return false
    return bound === undefined ? asked <= ROOM[node.metadata.labels?.['zone'] as 'a' | 'b'] : isReachable(bound, node)
  }
  if (bound !== undefined) return isReachable(bound, node)
  return [...state.volumes.values()].some(
    (one) =>
      one.spec.storageClassName === 'local' &&
      one.spec.claimRef === undefined &&
      isReachable(one, node) &&
      asked <= gib(one.spec.capacity?.['storage']),
  )
}

function checkNobodyWaitsInVain(state: State): void {
  for (const pod of state.pods.filter(({ spec }) => (spec.nodeName ?? '') === ''))
    for (const node of state.nodes)
      assert.ok(
        on(state, node).length >= 3 || !isServed(state, pod, node),
        `${nameOf(pod)} waits though ${nameOf(node)} would do`,
      )
}

describe('scheduler with volumes and failing writes', () => {
  it('schedules every possible pod to a node that can access its volumes, without overcommitment', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 12 }), async (steps) => {
        const world = await World.start()
        try {
          await world.take({ do: 'node', zone: 'a' })
          for (const one of steps) {
            await world.take(one)
            checkPlaces(await world.state())
          }
          await world.rest(400_000)
          const end = await world.state()
          checkPlaces(end)
          checkNobodyWaitsInVain(end)
        } finally {
          await world.stop()
        }
      }),
      { numRuns: 10, endOnFailure: true },
    )
  })
})
