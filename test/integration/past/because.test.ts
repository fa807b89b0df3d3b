/** Tests that writes name their causes, with all components in the process of the API server. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Deployment, Deployments } from '#apis/apps/v1.ts'
import { CronJobs, Jobs } from '#apis/batch/v1.ts'
import { ConfigMaps, Namespaces, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'
import type { ApiClient, Wanted } from '#client/api-client.ts'
import type { Change, ChangeList } from '#control-plane/past/changes.ts'
import { readJson } from '#lib/json/json.ts'
import { startCluster } from '#testing/cluster.ts'

import { chainTo, changeOf, firstCauses, type Read } from './causes.ts'

const namespace = 'default'
const FORCED = { fieldManager: 'test', force: true }
const MAX_BYTES = 1 << 24
const IN_NAMESPACE = `/namespaces/${namespace}`

function readerOf(client: ApiClient): Read {
  return async (path) => readJson(await (await client.ask({ method: 'GET', path })).bytes(MAX_BYTES))
}

/** All changes of a path such as `/api/v1/namespaces/default/pods`. */
async function changesOf(client: ApiClient, path: string): Promise<readonly Change[]> {
  return ((await readerOf(client)(`/past/rv:0..${path}`)) as ChangeList).items
}

/** The causes of the first change of the type. */
async function causesOf(client: ApiClient, path: string, type: Change['type']): Promise<readonly string[]> {
  const change = (await changesOf(client, path)).find((one) => one.type === type)
  assert.ok(change !== undefined, `${path} was ${type}`)
  return change.by?.because ?? []
}

function web(image: string): Wanted<Deployment> {
  const labels = { app: 'web' }
  const annotations = { 'simulated.hyperkube.io/pull-time': '5s' }
  const template = { metadata: { labels, annotations }, spec: { containers: [{ name: 'main', image }] } }
  const strategy = { rollingUpdate: { maxSurge: '100%', maxUnavailable: 0 } }
  const spec = { replicas: 3, selector: { matchLabels: labels }, template, strategy }
  return { metadata: { namespace, name: 'web' }, spec }
}

const CONTAINERS = [{ name: 'main', image: 'app', resources: {} }]

describe('causes of writes', () => {
  it('lead from the third running pod back to the user who applied the image', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client } = cluster
    await client.apply(Deployments, web('web:1'), FORCED)
    await cluster.settle()
    const { metadata } = await client.apply(Deployments, web('web:2'), FORCED)
    await cluster.settle()
    const running = (await changesOf(client, `/api/v1${IN_NAMESPACE}/pods`)).filter(({ type, object }) => {
      const { spec, status } = object as Pod
      return type === 'MODIFIED' && spec.containers[0]?.image === 'web:2' && status.phase === 'Running'
    })
    const third = running[2]
    assert.ok(third !== undefined)
    const pod = third.object.metadata.name
    const cause = `pods/${namespace}/${pod}@${third.resourceVersion}`
    const isApply = ({ change }: { change: Change }): boolean => change.resourceVersion === metadata.resourceVersion
    const chain = await chainTo(readerOf(client), cause, isApply)
    assert.deepEqual(
      chain.map(({ who, what }) => `${who} ${what}`),
      [
        'kubernetes-admin MODIFIED deployments/web',
        `deployment-controller ADDED replicasets/${pod?.replace(/-[^-]*$/, '')}`,
        `replicaset-controller ADDED pods/${pod}`,
        `kube-scheduler MODIFIED pods/${pod}`,
        `node MODIFIED pods/${pod}`,
        `node MODIFIED pods/${pod}`,
      ],
    )
  })

  it('of garbage are its deleted owners', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client } = cluster
    const { metadata } = await client.create(ConfigMaps, { metadata: { namespace, name: 'owner' } })
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: metadata.uid ?? '' }]
    await client.create(ConfigMaps, { metadata: { namespace, name: 'owned', ownerReferences } })
    await cluster.settle()
    await client.delete(ConfigMaps, { namespace, name: 'owner' })
    await cluster.settle()
    const maps = `/api/v1${IN_NAMESPACE}/configmaps`
    const [deletion = '', ...others] = await causesOf(client, `${maps}/owned`, 'DELETED')
    assert.deepEqual(others, [])
    const { what, who } = (await changeOf(readerOf(client), deletion)) ?? {}
    assert.deepEqual([what, who], ['DELETED configmaps/owner', 'kubernetes-admin'])
  })

  it('of the end of a namespace are its deletion', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client, clock } = cluster
    await client.create(Namespaces, { metadata: { name: 'gone' } })
    await client.create(ConfigMaps, { metadata: { namespace: 'gone', name: 'one' } })
    await client.delete(Namespaces, { name: 'gone' })
    await clock.advance('10s')
    const [cause = ''] = await causesOf(client, '/api/v1/namespaces/gone/configmaps/one', 'DELETED')
    const { change, who } = (await changeOf(readerOf(client), cause)) ?? {}
    assert.deepEqual([change?.object.metadata.name, who], ['gone', 'kubernetes-admin'])
    assert.ok(change?.object.metadata.deletionTimestamp !== undefined)
  })

  it('of an eviction lead to the last lease of the silent node', async () => {
    // Without a healthy node, nothing is evicted.
    await using cluster = await startCluster({ clock: 'virtual', nodes: 2 })
    const { client, clock } = cluster
    const tolerations = ['unreachable', 'not-ready'].map((name) => ({
      key: `node.kubernetes.io/${name}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 30,
    }))
    const spec = { containers: CONTAINERS, nodeName: 'node-0', tolerations }
    await client.create(Pods, { metadata: { namespace, name: 'one' }, spec })
    await clock.advance('30s')
    cluster.inject({ type: 'network-cut', node: 'node-0' })
    await clock.advance('2m')
    const changes = await changesOf(client, `/api/v1${IN_NAMESPACE}/pods/one`)
    const deletion = changes.find(({ object }) => object.metadata.deletionTimestamp !== undefined)
    const chain = await firstCauses(readerOf(client), `pods/${namespace}/one@${deletion?.resourceVersion}`)
    assert.deepEqual(
      chain.map(({ who, what }) => `${who} ${what}`),
      [
        'node-controller MODIFIED pods/one',
        // The taints NoExecute and NoSchedule, and the condition.
        'node-controller MODIFIED nodes/node-0',
        'node-controller MODIFIED nodes/node-0',
        'node-controller MODIFIED nodes/node-0',
        'node MODIFIED leases/node-0',
      ],
    )
  })

  it('of the removal of a lost pod are the deletion of its node', async () => {
    await using cluster = await startCluster({ clock: 'virtual', nodes: 2 })
    const { client, clock } = cluster
    await client.create(Pods, {
      metadata: { namespace, name: 'one' },
      spec: { containers: CONTAINERS, nodeName: 'node-1' },
    })
    await cluster.settle()
    cluster.inject({ type: 'network-cut', node: 'node-1' })
    await client.delete(Nodes, { name: 'node-1' })
    await clock.advance('2m')
    const [cause = ''] = await causesOf(client, `/api/v1${IN_NAMESPACE}/pods/one`, 'DELETED')
    const { what, who } = (await changeOf(readerOf(client), cause)) ?? {}
    assert.deepEqual([what, who], ['DELETED nodes/node-1', 'kubernetes-admin'])
  })

  it('of writes after a wait are the objects that had to wait', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client, clock } = cluster
    const annotations = { 'simulated.hyperkube.io/run-time': '1s' }
    const template = { metadata: { annotations }, spec: { containers: CONTAINERS, restartPolicy: 'Never' } }
    const jobSpec = { template, ttlSecondsAfterFinished: 20 }
    await client.create(CronJobs, {
      metadata: { namespace, name: 'tick' },
      spec: { schedule: '* * * * *', jobTemplate: { metadata: {}, spec: jobSpec } },
    })
    await clock.advance('150s')
    const jobs = await changesOf(client, `/apis/batch/v1${IN_NAMESPACE}/jobs`)
    const started = jobs.filter(({ type }) => type === 'ADDED')
    assert.equal(started.length, 2)
    for (const { by } of started) assert.match(by?.because.join() ?? '', /^cronjobs\.batch\/default\/tick@\d+$/)
    const expired = jobs.find(({ object }) => object.metadata.deletionTimestamp !== undefined)
    assert.match(expired?.by?.because.join() ?? '', /^jobs\.batch\/default\/tick-\d+@\d+$/)
    assert.equal((await client.list(Jobs, { namespace })).items.length, 0)
  })

  it('of a binding are the pod and the node for which it waited', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client } = cluster
    const nodeSelector = { disk: 'ssd' }
    await client.create(Pods, { metadata: { namespace, name: 'one' }, spec: { containers: CONTAINERS, nodeSelector } })
    await cluster.settle()
    const where = { name: 'node-0' }
    const node = await client.patch(Nodes, where, { type: 'merge', value: { metadata: { labels: nodeSelector } } })
    await cluster.settle()
    const changes = await changesOf(client, `/api/v1${IN_NAMESPACE}/pods/one`)
    const binding = changes.find(({ object }) => (object as Pod).spec.nodeName !== undefined)
    const [pod, ...others] = binding?.by?.because ?? []
    assert.match(pod ?? '', /^pods\/default\/one@\d+$/)
    assert.deepEqual(others, [`nodes/node-0@${node.metadata.resourceVersion}`])
  })

  it('of a preemption are the pod with the higher priority', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const { client } = cluster
    const { items } = await client.list(Nodes)
    const cpu = items[0]?.status.allocatable?.['cpu'] ?? ''
    const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu } } }]
    await client.create(PriorityClasses, { metadata: { name: 'high' }, value: 1000 })
    await client.create(Pods, { metadata: { namespace, name: 'low' }, spec: { containers } })
    await cluster.settle()
    await client.create(Pods, {
      metadata: { namespace, name: 'high' },
      spec: { containers, priorityClassName: 'high' },
    })
    await cluster.settle()
    const changes = await changesOf(client, `/api/v1${IN_NAMESPACE}/pods/low`)
    const deletion = changes.find(({ object }) => object.metadata.deletionTimestamp !== undefined)
    assert.match(deletion?.by?.because.join() ?? '', /^pods\/default\/high@\d+$/)
  })
})
