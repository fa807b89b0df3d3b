/**
 * Tests invariants of scheduling on a complete API server with a virtual clock. Faults: nodes and pods come, change and
 * go, bindings fail before or after they take effect, schedulers restart.
 *
 * No pod is placed against a rule or without free resources. Finally every schedulable pod is scheduled, and none is
 * blocked by one of lower priority.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { type Node, Nodes, type Pod, type PodSpec, Pods } from '#apis/core/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import type { ApiClient } from '#client/api-client.ts'

import { type Failure, FlakyScheduler } from './flaky-scheduler.ts'

const namespace = 'default'
const HOST = 'kubernetes.io/hostname'

/** The properties of a test pod, which the invariants depend on. */
interface Wanted {
  readonly cpu: number
  readonly priority: 0 | 10 | 100
  readonly app: string
  readonly rule: 'none' | 'shuns its like' | 'spreads' | 'wants zone a' | 'tolerates'
}

type Step =
  | { readonly do: 'node'; readonly cpu: number; readonly zone: string; readonly isTainted: boolean }
  | { readonly do: Disturbance; readonly which: number }
  | {
      readonly do: 'pods'
      readonly pods: readonly Wanted[]
      readonly failures: readonly Failure[]
      readonly kill: boolean
    }
  | { readonly do: 'wait'; readonly ms: number }

const DISTURBANCES = ['cordon', 'remove node', 'grow node', 'delete pod', 'delete pod', 'tolerate'] as const

type Disturbance = (typeof DISTURBANCES)[number]

const wanted: fc.Arbitrary<Wanted> = fc.record({
  cpu: fc.integer({ min: 1, max: 3 }),
  priority: fc.constantFrom(0 as const, 10 as const, 100 as const),
  app: fc.constantFrom('x', 'y'),
  rule: fc.constantFrom(
    'none' as const,
    'none' as const,
    'shuns its like' as const,
    'spreads' as const,
    'wants zone a' as const,
    'tolerates' as const,
  ),
})

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('node' as const),
      cpu: fc.integer({ min: 2, max: 4 }),
      zone: fc.constantFrom('a', 'b'),
      isTainted: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom(...DISTURBANCES),
      which: fc.nat(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('pods' as const),
      pods: fc.array(wanted, { minLength: 1, maxLength: 4 }),
      failures: fc.array(fc.constantFrom<Failure>('before', 'after', 'not at all'), { maxLength: 3 }),
      kill: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 400_000 }) }) },
)

function labelsOf({ app, rule }: Wanted): Record<string, string> {
  return { app, ...(rule === 'spreads' && { spread: app }) }
}

function specOf({ cpu, priority, app, rule }: Wanted): PodSpec {
  const labelSelector = { matchLabels: { app } }
  const spec: PodSpec = {
    containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: String(cpu) } } }],
    priorityClassName: `p${priority}`,
  }
  if (rule === 'tolerates') spec.tolerations = [{ key: 'k', operator: 'Exists' }]
  if (rule === 'wants zone a') spec.nodeSelector = { zone: 'a' }
  if (rule === 'shuns its like')
    spec.affinity = {
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: HOST, labelSelector }] },
    }
  if (rule === 'spreads')
    spec.topologySpreadConstraints = [
      {
        maxSkew: 1,
        topologyKey: 'zone',
        whenUnsatisfiable: 'DoNotSchedule',
        // Only those that spread: others of the app may come and upset what was right.
        labelSelector: { matchLabels: { spread: app } },
      },
    ]
  return spec
}

/** The cluster as the API server has it. */
interface State {
  readonly nodes: ReadonlyMap<string, Node>
  readonly pods: readonly Pod[]
}

class World {
  readonly #scheduler: FlakyScheduler
  #made = 0
  readonly wanted = new Map<string, Wanted>()

  static async start(): Promise<World> {
    const scheduler = await FlakyScheduler.start()
    for (const value of [0, 10, 100])
      await scheduler.client.create(PriorityClasses, { metadata: { name: `p${value}` }, value })
    return new World(scheduler)
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

  get failed(): number {
    return this.#scheduler.failed
  }

  settle(ms = 3000): Promise<void> {
    return this.#scheduler.clock.advance(ms)
  }

  async state(): Promise<State> {
    const { items: nodes } = await this.#client.list(Nodes)
    const { items: pods } = await this.#client.list(Pods, { namespace })
    return { nodes: new Map(nodes.map((node) => [node.metadata.name ?? '', node])), pods }
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'wait') await this.settle(step.ms)
    else if (step.do === 'node') await this.#addNode(step)
    else if (step.do === 'pods') await this.#addPods(step)
    else await this.#disturb(step)
    await this.settle()
  }

  async #addNode({ cpu, zone, isTainted }: Step & { do: 'node' }): Promise<void> {
    const name = `n${this.#made++}`
    const spec = isTainted ? { taints: [{ key: 'k', effect: 'NoSchedule' }] } : {}
    await this.#client.create(Nodes, { metadata: { name, labels: { [HOST]: name, zone } }, spec })
    await this.#resize(name, cpu)
  }

  async #addPods({ pods, failures, kill }: Step & { do: 'pods' }): Promise<void> {
    this.#scheduler.fail(failures)
    for (const one of pods) {
      const name = `pod${this.#made++}`
      this.wanted.set(name, one)
      await this.#client.create(Pods, { metadata: { namespace, name, labels: labelsOf(one) }, spec: specOf(one) })
    }
    if (kill) await this.#scheduler.kill()
  }

  async #disturb({ do: what, which }: { readonly do: Disturbance; readonly which: number }): Promise<void> {
    const { nodes, pods } = await this.state()
    const node = [...nodes.keys()][which % Math.max(1, nodes.size)]
    const pod = pods[which % Math.max(1, pods.length)]?.metadata.name
    if (what === 'delete pod' && pod !== undefined) await this.#end(pod)
    if (what === 'tolerate' && pod !== undefined) await this.#tolerate(pod)
    if (what === 'grow node' && node !== undefined) await this.#resize(node, 6)
    if (what === 'remove node' && node !== undefined) await this.#client.delete(Nodes, { name: node })
    if (what !== 'cordon' || node === undefined) return
    const unschedulable = nodes.get(node)?.spec.unschedulable === true ? null : true
    await this.#client.patch(Nodes, { name: node }, { type: 'merge', value: { spec: { unschedulable } } })
  }

  /** Adds a toleration and keeps all other fields. */
  async #tolerate(name: string): Promise<void> {
    const value = { spec: { tolerations: [{ key: 'k', operator: 'Exists' }] } }
    await this.#client.patch(Pods, { namespace, name }, { type: 'merge', value })
  }

  async #resize(name: string, cpu: number): Promise<void> {
    const allocatable = { cpu: String(cpu), pods: '3' }
    await this.#client.patch(
      Nodes,
      { name, subresource: 'status' },
      { type: 'merge', value: { status: { allocatable, capacity: allocatable } } },
    )
  }

  async #end(name: string): Promise<void> {
    await this.#client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })
  }

  /** Ends terminating pods as kubelets would, and waits until no scheduler retries any more. */
  async rest(): Promise<void> {
    for (let isQuiet = false; !isQuiet;) {
      await this.settle(400_000)
      const going = (await this.state()).pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      for (const { metadata } of going) await this.#end(metadata.name ?? '')
      isQuiet = going.length === 0
    }
  }
}

const cpuOf = (pod: Pod): number => Number(pod.spec.containers[0]?.resources?.requests?.['cpu'] ?? 0)
const appOf = ({ metadata }: Pod): string => metadata.labels?.['app'] ?? ''
const shuns = ({ spec }: Pod): boolean => spec.affinity?.podAntiAffinity !== undefined
const on = ({ pods }: State, node: string): Pod[] => pods.filter(({ spec }) => spec.nodeName === node)
const zoneOf = (node: Node | undefined): string => node?.metadata.labels?.['zone'] ?? ''
const isGoing = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined

/** The rules that only the pod and the node determine: nodeSelector, taints, cordons. */
function isAllowed({ spec }: Pod, node: Node): boolean {
  const { taints = [], unschedulable } = node.spec
  const isTainted = taints.some(({ key }) => key === 'k')
  if (unschedulable === true || (isTainted && (spec.tolerations ?? []).every(({ key }) => key !== 'k'))) return false
  return spec.nodeSelector?.['zone'] === undefined || spec.nodeSelector['zone'] === zoneOf(node)
}

function hasRoom(pod: Pod, node: Node, others: readonly Pod[]): boolean {
  const { allocatable = {} } = node.status
  const taken = others.reduce((sum, other) => sum + cpuOf(other), 0)
  return taken + cpuOf(pod) <= Number(allocatable['cpu']) && others.length < Number(allocatable['pods'])
}

const getAlong = (pod: Pod, others: readonly Pod[]): boolean =>
  others.every((other) => appOf(other) !== appOf(pod) || !(shuns(pod) || shuns(other)))

/** Those that spread, by zone; pods on their way out do not count, nodes that are cordoned do. */
function countByZone({ nodes, pods }: State, app: string): Map<string, number> {
  const counts = new Map(Array.from(nodes.values(), (node) => [zoneOf(node), 0]))
  for (const pod of pods) {
    const zone = zoneOf(nodes.get(pod.spec.nodeName ?? ''))
    if (pod.metadata.labels?.['spread'] === app && !isGoing(pod) && counts.has(zone))
      counts.set(zone, (counts.get(zone) ?? 0) + 1)
  }
  return counts
}

/** `added`: how many more there would be in the zone. */
function isSpread(state: State, pod: Pod, zone: string, added: number): boolean {
  if (pod.spec.topologySpreadConstraints === undefined) return true
  const counts = countByZone(state, appOf(pod))
  return (counts.get(zone) ?? 0) + added - Math.min(...counts.values()) <= 1
}

/**
 * Checks placements after every step against the state before it. `isCalm`: no binding failed and no pod was
 * preempted meanwhile.
 */
function checkPlaces(before: State, after: State, isCalm: boolean): void {
  const old = new Map(before.pods.map((pod) => [pod.metadata.uid, pod]))
  for (const [name, node] of after.nodes) {
    const there = on(after, name)
    for (const pod of there) {
      const others = there.filter((other) => other !== pod)
      assert.ok(hasRoom(pod, node, others), `${name} has more on it than it has room for`)
      assert.ok(getAlong(pod, others), `${name} has pods on it that shun each other`)
      if ((old.get(pod.metadata.uid)?.spec.nodeName ?? '') !== '') continue
      assert.ok(isAllowed(pod, node), `${pod.metadata.name} must not be on ${name}`)
      if (isCalm) assert.ok(isSpread(after, pod, zoneOf(node), 0), `${pod.metadata.name} is too many in its zone`)
    }
  }
}

/** When nothing happens any more. */
function checkNobodyWaitsInVain(state: State): void {
  const waiting = state.pods.filter(({ spec }) => (spec.nodeName ?? '') === '')
  for (const pod of waiting) {
    const { name } = pod.metadata
    const priority = pod.spec.priority ?? 0
    for (const [at, node] of state.nodes) {
      if (!isAllowed(pod, node)) continue
      const there = on(state, at)
      const fits = hasRoom(pod, node, there) && getAlong(pod, there) && isSpread(state, pod, zoneOf(node), 1)
      assert.ok(!fits, `${name} waits though ${at} would do`)
      if (pod.spec.topologySpreadConstraints !== undefined) continue
      const stronger = there.filter(({ spec }) => (spec.priority ?? 0) >= priority)
      assert.ok(
        stronger.length === there.length || !(hasRoom(pod, node, stronger) && getAlong(pod, stronger)),
        `${name} waits though only lesser pods are in its way on ${at}`,
      )
    }
  }
}

describe('scheduler with failing writes and restarts', () => {
  it('follows all rules, overcommits nothing, and schedules every possible pod', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 14 }), async (steps) => {
        const world = await World.start()
        try {
          let before = await world.state()
          for (const one of steps) {
            const { failed } = world
            await world.take(one)
            const after = await world.state()
            checkPlaces(before, after, world.failed === failed && one.do !== 'delete pod' && !after.pods.some(isGoing))
            before = after
          }
          await world.rest()
          const end = await world.state()
          checkPlaces(before, end, false)
          checkNobodyWaitsInVain(end)
        } finally {
          await world.stop()
        }
      }),
      { numRuns: 12, endOnFailure: true },
    )
  })
})
