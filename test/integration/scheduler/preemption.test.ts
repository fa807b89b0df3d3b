/** Tests preemption on a complete API server with a virtual clock: victims, waiting, conditions and events. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { type Pod, Pods } from '#apis/core/v1.ts'
import { Events } from '#apis/events/v1.ts'
import { PodDisruptionBudgets } from '#apis/policy/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'

import { asking, type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

let cluster: ClusterUnderTest

beforeEach(async () => {
  cluster = await startCluster()
  for (const [name, value] of Object.entries({ low: 10, middle: 100, high: 1000 }))
    await cluster.client.create(PriorityClasses, { metadata: { name }, value })
})

afterEach(() => cluster[Symbol.asyncDispose]())

const get = async (name: string): Promise<Pod> => {
  await cluster.settle()
  return cluster.client.get(Pods, { namespace, name })
}

const of = (priorityClassName: string, cpu: string) => ({ ...asking({ cpu }), priorityClassName })
const on = (node: string) => ({ nodeSelector: { 'kubernetes.io/hostname': node } })

/** The kubelet has stopped it. */
const end = (name: string): Promise<void> => cluster.client.delete(Pods, { namespace, name }, { gracePeriodSeconds: 0 })

describe('pod with higher priority', () => {
  it("is nominated for a victim's node, waits for the victim's termination and is bound", async () => {
    await cluster.node('n1')
    await cluster.pod('weak', of('low', '3'))
    assert.equal(await cluster.placeOf('weak'), 'n1')
    const strong = await cluster.pod('strong', of('high', '3'))
    assert.equal(await cluster.whyNot('strong'), '0/1 nodes are available: 1 Insufficient cpu.')
    assert.equal((await get('strong')).status.nominatedNodeName, 'n1')
    const victim = await get('weak')
    assert.notEqual(victim.metadata.deletionTimestamp, undefined)
    const {
      lastTransitionTime: _,
      lastProbeTime: __,
      ...condition
    } = victim.status.conditions?.find(({ type }) => type === 'DisruptionTarget') ?? {
      lastTransitionTime: '',
      lastProbeTime: '',
    }
    assert.deepEqual(condition, {
      type: 'DisruptionTarget',
      observedGeneration: 1,
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: 'default-scheduler: preempting to accommodate a higher priority pod',
    })
    const { items } = await cluster.client.list(Events, { namespace, fieldSelector: 'reason=Preempted' })
    assert.deepEqual(
      items.map(({ type, action, note, regarding, related }) => [type, action, note, regarding?.name, related?.name]),
      [['Normal', 'Preempting', `Preempted by pod ${strong.metadata.uid} on node n1`, 'weak', 'strong']],
    )
    await end('weak')
    await cluster.settle(3000)
    assert.equal(await cluster.placeOf('strong'), 'n1')
    assert.equal((await get('strong')).status.nominatedNodeName, undefined)
  })

  it('reports terminating victims while it waits', async () => {
    await cluster.node('n1')
    await cluster.pod('weak', of('low', '3'))
    await cluster.settle()
    await cluster.pod('strong', of('high', '3'))
    await cluster.settle()
    // A new node that is too small: it is tried again.
    await cluster.node('n2', { allocatable: { cpu: '1', memory: '1Gi', pods: '10' } })
    await cluster.settle(3000)
    assert.equal(
      await cluster.whyNot('strong'),
      '0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to a terminating pod on the nominated node.',
    )
  })

  it('preempts no pod with preemptionPolicy Never', async () => {
    await cluster.client.create(PriorityClasses, {
      metadata: { name: 'polite' },
      value: 1000,
      preemptionPolicy: 'Never',
    })
    await cluster.node('n1')
    await cluster.pod('weak', of('low', '3'))
    await cluster.settle()
    await cluster.pod('strong', of('polite', '3'))
    assert.equal(
      await cluster.whyNot('strong'),
      '0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.',
    )
  })

  it('preempts as few victims as possible, and avoids those that a PodDisruptionBudget protects', async () => {
    await cluster.node('n1')
    await cluster.client.create(PodDisruptionBudgets, {
      metadata: { namespace, name: 'b' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'kept' } } },
    })
    await cluster.pod('kept', of('low', '1'), { app: 'kept' })
    await cluster.pod('older', of('middle', '1'))
    await cluster.pod('big', of('low', '2'))
    for (const name of ['kept', 'older', 'big']) assert.equal(await cluster.placeOf(name), 'n1')
    await cluster.pod('strong', of('high', '1'))
    await cluster.settle()
    const gone = async (name: string): Promise<boolean> => (await get(name)).metadata.deletionTimestamp !== undefined
    assert.deepEqual(
      await Promise.all(['kept', 'older', 'big'].map(gone)),
      [false, false, true],
      'the protected one first, then by importance',
    )
  })

  it('preempts on the node with the lowest-priority victim', async () => {
    for (const name of ['n1', 'n2', 'n3']) await cluster.node(name)
    await cluster.pod('a', { ...of('middle', '4'), ...on('n1') })
    await cluster.pod('b', { ...of('low', '4'), ...on('n2') })
    await cluster.pod('c', { ...of('middle', '4'), ...on('n3') })
    await cluster.settle()
    await cluster.pod('strong', of('high', '2'))
    assert.equal((await get('strong')).status.nominatedNodeName, 'n2')
  })

  it('clears the nomination of a lower-priority pod', async () => {
    await cluster.node('n1')
    await cluster.pod('weak', of('low', '3'))
    await cluster.settle()
    await cluster.pod('middle', of('middle', '3'))
    assert.equal((await get('middle')).status.nominatedNodeName, 'n1')
    await end('weak')
    // Before the one that was promised the room has had its turn.
    await cluster.pod('weak2', { ...of('low', '3') })
    await cluster.settle(20_000)
    assert.equal(await cluster.placeOf('middle'), 'n1')
    assert.equal(await cluster.placeOf('weak2'), '')
  })

  it('spares pods whose deletion does not help', async () => {
    await cluster.node('n1')
    await cluster.node('n2', { spec: { unschedulable: true } })
    await cluster.node('n3')
    await cluster.pod('peer', { ...of('high', '3'), ...on('n1') })
    await cluster.pod('weak', { ...of('low', '1'), ...on('n3') })
    await cluster.pod('other', { ...of('high', '3'), ...on('n3') })
    await cluster.settle()
    await cluster.pod('strong', of('high', '3'))
    assert.equal(
      await cluster.whyNot('strong'),
      '0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.',
    )
  })
})
