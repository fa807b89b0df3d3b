/** Tests the scheduler on a complete API server with a virtual clock: placement and unschedulable pods. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Nodes, Pods } from '#apis/core/v1.ts'

import { asking, type ClusterUnderTest, namespace, startCluster } from './cluster-under-test.ts'

let cluster: ClusterUnderTest

beforeEach(async () => {
  cluster = await startCluster()
})

afterEach(() => cluster[Symbol.asyncDispose]())

describe('schedulable pod', () => {
  it('is bound, with an event', async () => {
    await cluster.node('n1')
    await cluster.pod('p')
    assert.equal(await cluster.placeOf('p'), 'n1')
    assert.deepEqual(await cluster.events('p'), ['Scheduled: Successfully assigned default/p to n1'])
  })

  it('is placed on the least allocated node', async () => {
    await cluster.node('n1')
    await cluster.node('n2')
    await cluster.pod('a', asking({ cpu: '2' }))
    const first = await cluster.placeOf('a')
    await cluster.pod('b', asking({ cpu: '2' }))
    assert.notEqual(await cluster.placeOf('b'), first)
  })

  it('is ignored if it names another scheduler', async () => {
    await cluster.node('n1')
    await cluster.pod('p', { schedulerName: 'other' })
    assert.equal(await cluster.placeOf('p'), '')
    assert.deepEqual(await cluster.events('p'), [])
  })

  it('waits for its scheduling gates', async () => {
    await cluster.node('n1')
    await cluster.pod('p', { schedulingGates: [{ name: 'g' }] })
    assert.equal(await cluster.placeOf('p'), '')
    await cluster.client.patch(
      Pods,
      { namespace, name: 'p' },
      { type: 'merge', value: { spec: { schedulingGates: null } } },
    )
    assert.equal(await cluster.placeOf('p'), 'n1')
  })
})

describe('unschedulable pod', () => {
  it('reports that there are no nodes, and is placed when one is added', async () => {
    await cluster.pod('p')
    assert.equal(await cluster.whyNot('p'), 'no nodes available to schedule pods')
    await cluster.node('n1')
    await cluster.settle(2000)
    assert.equal(await cluster.placeOf('p'), 'n1')
  })

  it('reports the number of nodes for each reason', async () => {
    await cluster.node('n1', { spec: { unschedulable: true } })
    await cluster.node('n2', { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } })
    await cluster.node('n3')
    await cluster.node('n4', { allocatable: { cpu: '100m', memory: '1Gi', pods: '110' } })
    await cluster.pod('p', { ...asking({ cpu: '1', memory: '2Gi' }), nodeSelector: { 'kubernetes.io/hostname': 'n4' } })
    assert.match(
      await cluster.whyNot('p'),
      /^0\/4 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 node\(s\) didn't match Pod's node affinity\/selector, 1 node\(s\) had untolerated taint\(s\), 1 node\(s\) were unschedulable\./,
    )
  })

  it('waits for a node with the declared feature', async () => {
    const node = await cluster.node('n1')
    const rule = { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [1] } }
    const container = { name: 'c', image: 'i', resources: {}, restartPolicy: 'Never', restartPolicyRules: [rule] }
    await cluster.pod('p', { containers: [container] })
    assert.match(
      await cluster.whyNot('p'),
      /^0\/1 nodes are available: 1 node\(s\) didn't match Pod's required features\./,
    )
    const value = { status: { declaredFeatures: ['RestartAllContainersOnContainerExits'] } }
    await cluster.client.patch(
      Nodes,
      { name: node.metadata.name ?? '', subresource: 'status' },
      { type: 'merge', value },
    )
    await cluster.settle(2000)
    assert.equal(await cluster.placeOf('p'), 'n1')
  })

  it('is placed when a node has free resources again', async () => {
    await cluster.node('n1')
    await cluster.pod('a', asking({ cpu: '3' }))
    assert.equal(await cluster.placeOf('a'), 'n1')
    await cluster.pod('b', asking({ cpu: '3' }))
    assert.equal(await cluster.placeOf('b'), '')
    await cluster.client.delete(Pods, { namespace, name: 'a' }, { gracePeriodSeconds: 0 })
    await cluster.settle(3000)
    assert.equal(await cluster.placeOf('b'), 'n1')
  })

  it('is placed when the node is uncordoned', async () => {
    await cluster.node('n1', { spec: { unschedulable: true } })
    await cluster.pod('p')
    assert.equal(await cluster.placeOf('p'), '')
    await cluster.client.patch(Nodes, { name: 'n1' }, { type: 'merge', value: { spec: { unschedulable: null } } })
    await cluster.settle(3000)
    assert.equal(await cluster.placeOf('p'), 'n1')
  })
})

describe('inter-pod affinity in the scheduler', () => {
  const near = (labels: Record<string, string>, topologyKey: string) => [
    { labelSelector: { matchLabels: labels }, topologyKey },
  ]
  const zones = async (): Promise<void> => {
    await cluster.node('a1', { labels: { zone: 'a' } })
    await cluster.node('a2', { labels: { zone: 'a' } })
    await cluster.node('b1', { labels: { zone: 'b' } })
  }

  it('places a pod in the zone of a matching pod', async () => {
    await zones()
    await cluster.pod('db', { nodeSelector: { 'kubernetes.io/hostname': 'b1' } }, { app: 'db' })
    assert.equal(await cluster.placeOf('db'), 'b1')
    const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: near({ app: 'db' }, 'zone') } }
    await cluster.pod('web', { affinity })
    assert.equal(await cluster.placeOf('web'), 'b1')
  })

  it('respects anti-affinity of both pods', async () => {
    await zones()
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: near({ app: 'x' }, 'zone') } }
    for (const name of ['x1', 'x2', 'x3']) await cluster.pod(name, { affinity }, { app: 'x' })
    const places = await Promise.all(['x1', 'x2', 'x3'].map((name) => cluster.placeOf(name)))
    assert.deepEqual(new Set(places.map((name) => name.slice(0, 1))), new Set(['a', 'b', '']))
    const [lonely = ''] = ['x1', 'x2', 'x3'].filter((_, at) => places[at] === '')
    assert.match(
      await cluster.whyNot(lonely),
      /^0\/3 nodes are available: 3 node\(s\) didn't match pod anti-affinity rules\./,
    )
    await cluster.pod('y', {}, { app: 'x' })
    assert.match(
      await cluster.whyNot('y'),
      /^0\/3 nodes are available: 3 node\(s\) didn't satisfy existing pods anti-affinity rules\./,
    )
  })

  it('accepts the first pod of a group whose term matches itself', async () => {
    await zones()
    const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: near({ app: 'x' }, 'zone') } }
    await cluster.pod('x1', { affinity }, { app: 'x' })
    const first = await cluster.placeOf('x1')
    assert.notEqual(first, '')
    await cluster.pod('x2', { affinity }, { app: 'x' })
    assert.equal((await cluster.placeOf('x2')).slice(0, 1), first.slice(0, 1))
  })

  it('spreads pods evenly over nodes', async () => {
    await zones()
    const topologySpreadConstraints = [
      {
        maxSkew: 1,
        topologyKey: 'zone',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { app: 'x' } },
      },
    ]
    const names = ['x1', 'x2', 'x3', 'x4']
    for (const name of names) {
      await cluster.pod(name, { topologySpreadConstraints }, { app: 'x' })
      await cluster.settle()
    }
    const places = await Promise.all(names.map((name) => cluster.placeOf(name)))
    assert.deepEqual(places.map((name) => name.slice(0, 1)).sort(), ['a', 'a', 'b', 'b'])
  })
})
