import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Deployments } from 'hyperkube/apis/apps/v1'
import { CronJobs, Jobs } from 'hyperkube/apis/batch/v1'
import { Pods } from 'hyperkube/apis/core/v1'
import { startCluster } from 'hyperkube/testing'

const namespace = 'default'
const mine = { fieldManager: 'my-test' }

test('a Deployment survives the failure of a node', async () => {
  await using cluster = await startCluster({ nodes: 2, clock: 'virtual' })
  const { client } = cluster
  const labels = { app: 'web' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'nginx' }] } }
  const spec = { replicas: 2, selector: { matchLabels: labels }, template }
  await client.apply(Deployments, { metadata: { namespace, name: 'web' }, spec }, mine)
  await cluster.settle()

  cluster.inject({ type: 'node-down', node: 'node-0' })
  await cluster.clock.advance('10m')
  const { status } = await client.get(Deployments, { namespace, name: 'web' })
  assert.equal(status?.availableReplicas, 2)
})

test('a CronJob keeps three of the seven jobs of a week', async () => {
  await using cluster = await startCluster({ clock: 'virtual', pulse: '2h' })
  const containers = [{ name: 'main', image: 'backup', command: ['sleep', '5'] }]
  const jobTemplate = { spec: { template: { spec: { restartPolicy: 'Never', containers } } } }
  const metadata = { namespace, name: 'nightly' }
  await cluster.client.apply(CronJobs, { metadata, spec: { schedule: '0 3 * * *', jobTemplate } }, mine)
  await cluster.clock.advance('7d')
  assert.equal((await cluster.client.list(Jobs, { namespace })).items.length, 3)
})

test('a cluster and its fork are independent', async () => {
  await using cluster = await startCluster({ clock: 'virtual' })
  const pod = { metadata: { namespace, name: 'one' }, spec: { containers: [{ name: 'main', image: 'nginx' }] } }
  await cluster.client.apply(Pods, pod, mine)
  await cluster.settle()
  await using copy = await cluster.fork()
  await copy.client.delete(Pods, { namespace, name: 'one' })
  await copy.settle()
  assert.equal((await copy.client.list(Pods, { namespace })).items.length, 0)
  assert.equal((await cluster.client.list(Pods, { namespace })).items.length, 1)
})
