/** Property: preemption violates disruption budgets only if every choice of victims does. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { type Pod, Pods } from '#apis/core/v1.ts'
import { PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'

import { asking, type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

const CPU = 4

interface Scene {
  /** Of each node, the apps of the lesser pods on it, which ask for one CPU each. */
  readonly nodes: readonly (readonly ('kept' | 'free')[])[]
  readonly allowed: number
  /** How much each of the important pods asks for, one after the other. */
  readonly important: readonly number[]
}

const scene: fc.Arbitrary<Scene> = fc.record({
  nodes: fc.array(fc.array(fc.constantFrom('kept', 'free'), { minLength: 2, maxLength: CPU }), {
    minLength: 1,
    maxLength: 4,
  }),
  allowed: fc.integer({ min: 0, max: 2 }),
  important: fc.array(fc.integer({ min: 1, max: CPU }), { minLength: 1, maxLength: 4 }),
})

const cpuOf = ({ spec }: Pod): number => Number(spec.containers[0]?.resources?.requests?.['cpu'])
const isKept = ({ metadata }: Pod): boolean => metadata.labels?.['app'] === 'kept'
const isLesser = ({ spec }: Pod): boolean => (spec.priority ?? 0) === 0
const isGoing = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined

async function setUp({ nodes, allowed }: Scene): Promise<ClusterUnderTest> {
  const cluster = await startCluster()
  const { client } = cluster
  await client.create(PriorityClasses, { metadata: { name: 'high' }, value: 1000 })
  const budget = { selector: { matchLabels: { app: 'kept' } }, maxUnavailable: allowed }
  const metadata = { namespace, name: 'budget' }
  await client.create(PodDisruptionBudgets, { metadata, spec: budget, status: {} as never })
  const counts = { disruptionsAllowed: allowed, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 }
  const patch = { type: 'merge' as const, value: { status: counts } }
  await client.patch(PodDisruptionBudgets, { namespace, name: 'budget', subresource: 'status' }, patch)
  for (const [at, apps] of nodes.entries()) {
    await cluster.node(`n${at}`, { allocatable: { cpu: String(CPU), memory: '8Gi', pods: '110' } })
    for (const [of, app] of apps.entries())
      await cluster.pod(`n${at}-${of}`, { ...asking({ cpu: '1' }), nodeName: `n${at}` }, { app })
  }
  await cluster.settle()
  return cluster
}

/**
 * The number of protected pods beyond the budget that must be preempted on the node; undefined if preemption does not
 * help there.
 */
function harmOn(there: readonly Pod[], cpu: number, allowed: number): number | undefined {
  const need = cpu - (CPU - there.reduce((sum, pod) => sum + cpuOf(pod), 0))
  const lesser = there.filter(isLesser)
  if (need > lesser.length) return undefined
  return Math.max(
    0,
    need - lesser.filter((pod) => !isKept(pod)).length - Math.min(allowed, lesser.filter(isKept).length),
  )
}

async function podsOf({ client }: ClusterUnderTest): Promise<Pod[]> {
  return (await client.list(Pods, { namespace })).items
}

async function arrive(cluster: ClusterUnderTest, name: string, cpu: number, { nodes, allowed }: Scene): Promise<void> {
  const before = await podsOf(cluster)
  const on = (node: string): Pod[] => before.filter(({ spec }) => spec.nodeName === node)
  const harms = nodes.flatMap((_, at) => harmOn(on(`n${at}`), cpu, allowed) ?? [])
  await cluster.pod(name, { ...asking({ cpu: String(cpu) }), priorityClassName: 'high' })
  await cluster.settle(3000)
  const victims = (await podsOf(cluster)).filter(isGoing)
  const hasRoom = nodes.some((_, at) => on(`n${at}`).reduce((sum, pod) => sum + cpuOf(pod), 0) + cpu <= CPU)
  if (hasRoom || harms.length === 0) assert.equal(victims.length, 0, 'somebody went though nobody had to')
  else {
    const beyond = Math.max(0, victims.filter(isKept).length - allowed)
    assert.ok(victims.length > 0, `${name} waits though lesser pods could go`)
    assert.equal(beyond, Math.min(...harms), 'a budget was violated though others could have gone')
  }
  for (const { metadata } of victims)
    await cluster.client.delete(Pods, { namespace, name: metadata.name ?? '' }, { gracePeriodSeconds: 0 })
  if (harms.length > 0) assert.notEqual(await cluster.placeOf(name), '', `${name} has no place though room was made`)
}

describe('PodDisruptionBudget in preemption', () => {
  it('is violated only if no other node and victims remain', async () => {
    await fc.assert(
      fc.asyncProperty(scene, async (drawn) => {
        await using cluster = await setUp(drawn)
        for (const [at, cpu] of drawn.important.entries()) await arrive(cluster, `important-${at}`, cpu, drawn)
      }),
      { numRuns: 10, endOnFailure: true },
    )
  })
})
