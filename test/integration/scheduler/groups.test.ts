/** Tests pod groups on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { type Pod, Pods } from '#apis/core/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import { createGates } from '#component/flags/gates.ts'

import { asking, type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

const GATES = { GenericWorkload: true, GangScheduling: true }
let cluster: ClusterUnderTest

beforeEach(async () => {
  cluster = await startCluster(
    { isEnabled: createGates(new Map(Object.entries(GATES))) },
    {
      'feature-gates': new Map(Object.entries(GATES)),
      'runtime-config': new Map([['scheduling.k8s.io/v1alpha2', 'true']]),
    },
  )
})

afterEach(() => cluster[Symbol.asyncDispose]())

const member = (podGroupName: string, name: string, cpu = '1', more = {}): Promise<Pod> =>
  cluster.pod(name, { ...asking({ cpu }), schedulingGroup: { podGroupName }, ...more })

const group = (name: string, schedulingPolicy: PodGroup['spec']['schedulingPolicy']): Promise<PodGroup> =>
  cluster.client.create(PodGroups, {
    metadata: { namespace, name },
    spec: { podGroupTemplateRef: null, schedulingPolicy },
  })

const gang = (name: string, minCount: number): Promise<PodGroup> => group(name, { gang: { minCount } })

/** `status reason: message`. */
async function conditionOf(name: string): Promise<string> {
  const { status } = await cluster.client.get(PodGroups, { namespace, name })
  const found = status.conditions?.find(({ type }) => type === 'PodGroupScheduled')
  return found === undefined ? '' : `${found.status} ${found.reason}: ${found.message}`
}

const places = (...names: readonly string[]): Promise<string[]> =>
  Promise.all(names.map((name) => cluster.placeOf(name)))

describe('PodGroup with a gang policy', () => {
  it('waits for the PodGroup object and enough pods, then is scheduled as a whole', async () => {
    await cluster.node('n1')
    await member('g', 'a')
    await member('g', 'b')
    assert.deepEqual(await places('a', 'b'), ['', ''])
    await gang('g', 3)
    await cluster.settle(15_000)
    assert.deepEqual(await places('a', 'b'), ['', ''])
    assert.equal(await conditionOf('g'), '')
    await member('g', 'c')
    assert.deepEqual(await places('a', 'b', 'c'), ['n1', 'n1', 'n1'])
    assert.equal(await conditionOf('g'), 'True Scheduled: ')
  })

  it('reserves no resources while too few pods fit, and reports that', async () => {
    await cluster.node('n1', { allocatable: { cpu: '2', memory: '8Gi', pods: '10' } })
    for (const name of ['a', 'b', 'c']) await member('g', name)
    await gang('g', 3)
    assert.deepEqual(await places('a', 'b', 'c'), ['', '', ''])
    const waiting =
      'pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, one or more plugins asked to wait and no plugin rejected pod'
    const full =
      '0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.'
    const said = await Promise.all(['a', 'b', 'c'].map((name) => cluster.whyNot(name)))
    assert.deepEqual(said.sort(), [full, waiting, waiting])
    assert.equal(await conditionOf('g'), 'False Unschedulable: pod group is unschedulable')
    // Another pod may use the resources.
    await cluster.pod('other', asking({ cpu: '2' }))
    assert.equal(await cluster.placeOf('other'), 'n1')
    await cluster.node('n2')
    await cluster.settle(20_000)
    assert.deepEqual(await places('a', 'b', 'c'), ['n2', 'n2', 'n2'])
    assert.equal(await conditionOf('g'), 'True Scheduled: ')
  })

  it('is scheduled without the pods that do not fit if it has more than minCount', async () => {
    await cluster.node('n1', { allocatable: { cpu: '2', memory: '8Gi', pods: '10' } })
    for (const name of ['a', 'b', 'c']) await member('g', name)
    await gang('g', 2)
    assert.equal((await places('a', 'b', 'c')).filter((node) => node === 'n1').length, 2)
    await cluster.settle(20_000)
    assert.equal(await conditionOf('g'), 'True Scheduled: ')
  })

  it('preempts for all pods before any is bound', async () => {
    await cluster.client.create(PriorityClasses, { metadata: { name: 'high' }, value: 1000 })
    await cluster.node('n1', { allocatable: { cpu: '2', memory: '8Gi', pods: '10' } })
    await cluster.node('n2', { allocatable: { cpu: '1', memory: '8Gi', pods: '10' } })
    await cluster.pod('low', asking({ cpu: '2' }))
    assert.equal(await cluster.placeOf('low'), 'n1')
    for (const name of ['a', 'b']) await member('g', name, '1', { priorityClassName: 'high' })
    await gang('g', 2)
    await cluster.settle()
    assert.deepEqual(await places('a', 'b'), ['', ''])
    assert.equal(
      await conditionOf('g'),
      'False Unschedulable: pod group is unschedulable, pod group is waiting for preemption to complete',
    )
    const { metadata } = await cluster.client.get(Pods, { namespace, name: 'low' })
    assert.notEqual(metadata.deletionTimestamp, undefined)
    const nominated = await Promise.all(
      ['a', 'b'].map(
        async (name) => (await cluster.client.get(Pods, { namespace, name })).status.nominatedNodeName ?? '',
      ),
    )
    assert.deepEqual(nominated.sort(), ['n1', 'n2'])
    await cluster.client.delete(Pods, { namespace, name: 'low' }, { gracePeriodSeconds: 0 })
    await cluster.settle(20_000)
    assert.deepEqual((await places('a', 'b')).sort(), ['n1', 'n2'])
    assert.equal(await conditionOf('g'), 'True Scheduled: ')
  })

  it('is scheduled with new pods if it lost waiting ones', async () => {
    await cluster.node('n1')
    await gang('g', 2)
    await member('g', 'a')
    await cluster.settle()
    await cluster.client.delete(Pods, { namespace, name: 'a' }, { gracePeriodSeconds: 0 })
    await member('g', 'b')
    assert.deepEqual(await places('b'), [''])
    await member('g', 'c')
    assert.deepEqual(await places('b', 'c'), ['n1', 'n1'])
  })
})

describe('PodGroup without a gang policy', () => {
  it('is scheduled as far as possible', async () => {
    await cluster.node('n1', { allocatable: { cpu: '2', memory: '8Gi', pods: '10' } })
    await group('g', { basic: {} })
    for (const name of ['a', 'b', 'c']) await member('g', name)
    assert.equal((await places('a', 'b', 'c')).filter((node) => node === 'n1').length, 2)
    assert.equal(await conditionOf('g'), 'True Scheduled: ')
  })
})
