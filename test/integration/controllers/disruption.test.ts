/** Tests the disruption controller on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { type ReplicaSet, ReplicaSets } from '#apis/apps/v1.ts'
import { Events, Namespaces, type Pod, Pods } from '#apis/core/v1.ts'
import { type PodDisruptionBudgetSpec, PodDisruptionBudgets } from '#apis/policy/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { disruptionController } from '#controllers/workloads/disruption.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { controllerRef } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
const namespace = 'budgets'
const labels = { app: 'bare' }

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  controllers = startControllers(plane, clock, [disruptionController])
  client = controllers.client
  await client.create(Namespaces, { metadata: { name: namespace } })
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i', resources: {} }] } }

const run = async (name: string, owner?: ReplicaSet): Promise<Pod> => {
  const ownerReferences = owner === undefined ? [] : [controllerRef(owner, ReplicaSets)]
  await client.create(Pods, { metadata: { namespace, name, labels, ownerReferences }, spec: template.spec })
  const status = {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: timeOf(clock.now()) }],
  }
  return client.patch(Pods, { namespace, name, subresource: 'status' }, { type: 'merge', value: { status } })
}

const allow = async (spec: Partial<PodDisruptionBudgetSpec>, name = 'b'): Promise<void> => {
  await client.create(PodDisruptionBudgets, {
    metadata: { namespace, name },
    spec: { selector: { matchLabels: labels }, ...spec },
  })
  await clock.advance(1000)
}

const status = async (): Promise<string> => {
  const found = (await client.get(PodDisruptionBudgets, { namespace, name: 'b' })).status
  const [condition] = found?.conditions ?? []
  const counts = `${found?.disruptionsAllowed} of ${found?.currentHealthy}, ${found?.desiredHealthy} of ${found?.expectedPods}`
  return `${counts}: ${condition?.type} ${condition?.status} ${condition?.reason} "${condition?.message}"`
}

const told = async (): Promise<string[]> => {
  await clock.advance(1000)
  const { items } = await client.list(Events, { namespace })
  return items.map(
    ({ type, reason, message, reportingComponent }) => `${type} ${reason} ${reportingComponent} ${message}`,
  )
}

const scale = (replicas: number): Promise<ReplicaSet> =>
  client.create(ReplicaSets, {
    metadata: { namespace, name: 'set' },
    spec: { replicas, selector: { matchLabels: labels }, template },
  })

describe('disruption controller', () => {
  it('compares minAvailable with existing pods if it is a number', async () => {
    await run('one')
    await run('two')
    await allow({ minAvailable: 1 })
    assert.equal(await status(), '1 of 2, 1 of 2: DisruptionAllowed True SufficientPods ""')
    await client.delete(Pods, { namespace, name: 'two' }, { gracePeriodSeconds: 0 })
    await clock.advance(1000)
    assert.equal(await status(), '0 of 1, 1 of 1: DisruptionAllowed False InsufficientPods ""')
  })

  it('compares minAvailable with the scale of the workload if it is a percentage, rounded up', async () => {
    const set = await scale(3)
    for (const name of ['one', 'two', 'three']) await run(name, set)
    await allow({ minAvailable: '50%' })
    assert.equal(await status(), '1 of 3, 2 of 3: DisruptionAllowed True SufficientPods ""')
  })

  it('compares maxUnavailable with the scale of the workload', async () => {
    const set = await scale(4)
    for (const name of ['one', 'two', 'three']) await run(name, set)
    await allow({ maxUnavailable: 1 })
    assert.equal(await status(), '0 of 3, 3 of 4: DisruptionAllowed False InsufficientPods ""')
  })

  it('reports missing pods and an unknown scale', async () => {
    await allow({ minAvailable: 1 })
    assert.deepEqual(await told(), ['Normal NoPods controllermanager No matching pods found'])
    assert.equal(await status(), '0 of 0, 1 of 0: DisruptionAllowed False InsufficientPods ""')
    await client.delete(PodDisruptionBudgets, { namespace, name: 'b' })
    await run('bare')
    await allow({ maxUnavailable: 1 })
    assert.ok(
      (await told()).includes(
        'Warning UnmanagedPods controllermanager Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string{app: bare,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.',
      ),
    )
  })

  it('reports a pod with several PodDisruptionBudgets', async () => {
    await run('one')
    await allow({ minAvailable: 1 })
    await allow({ minAvailable: 1 }, 'c')
    const message = `Pod "budgets"/"one" matches multiple PodDisruptionBudgets.  Chose "b" arbitrarily.`
    await client.patch(
      Pods,
      { namespace, name: 'one' },
      { type: 'merge', value: { metadata: { labels: { more: 'x' } } } },
    )
    assert.ok((await told()).includes(`Warning MultiplePodDisruptionBudgets controllermanager ${message}`))
  })

  it('waits two minutes for evicted pods, and then ignores the eviction of those that still exist', async () => {
    await run('one')
    await run('two')
    await allow({ minAvailable: 1 })
    const disruptedPods = { one: timeOf(clock.now()) }
    const where = { namespace, name: 'b', subresource: 'status' }
    await client.patch(PodDisruptionBudgets, where, { type: 'merge', value: { status: { disruptedPods } } })
    const target = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'EvictionByEvictionAPI',
      lastTransitionTime: timeOf(clock.now()),
    }
    const value = { status: { conditions: [target] } }
    await client.patch(Pods, { namespace, name: 'one', subresource: 'status' }, { type: 'strategic', value })
    await clock.advance(1000)
    assert.equal(await status(), '0 of 1, 1 of 2: DisruptionAllowed False InsufficientPods ""')
    await clock.advance(121_000)
    assert.equal(await status(), '1 of 2, 1 of 2: DisruptionAllowed True SufficientPods ""')
    const said = `Warning NotDeleted controllermanager Pod was expected by PDB budgets/b to be deleted but it wasn't`
    assert.ok((await told()).includes(said))
    const pod = await client.get(Pods, { namespace, name: 'one' })
    assert.equal(pod.status.conditions?.find(({ type }) => type === 'DisruptionTarget')?.status, 'False')
  })
})
