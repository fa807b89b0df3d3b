/**
 * A program with a cluster inside: prints the state of a Deployment on three nodes while one of them fails.
 * `node examples/embedded.ts 6`
 */
import { Deployments } from 'hyperkube/apis/apps/v1'
import { Pods } from 'hyperkube/apis/core/v1'
import { startCluster } from 'hyperkube/testing'

const replicas = Number(process.argv[2] ?? 3)
const namespace = 'default'

await using cluster = await startCluster({ nodes: 3, clock: 'virtual' })
const { client, clock } = cluster
const labels = { app: 'web' }
const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'nginx' }] } }
const spec = { replicas, selector: { matchLabels: labels }, template }
await client.apply(Deployments, { metadata: { namespace, name: 'web' }, spec }, { fieldManager: 'embedded' })
await cluster.settle()
await tell('at first')

cluster.inject({ type: 'node-down', node: 'node-0' })
await clock.advance('2m')
await tell('two minutes after a node died')
await clock.advance('10m')
await tell('ten minutes later')

async function tell(when: string): Promise<void> {
  const { status } = await client.get(Deployments, { namespace, name: 'web' })
  const { items } = await client.list(Pods, { namespace })
  const there = new Set(items.filter(({ metadata }) => !metadata.deletionTimestamp).map((pod) => pod.spec.nodeName))
  const nodes = ['node-0', 'node-1', 'node-2'].filter((name) => there.has(name))
  console.log(`${when}: ${status?.availableReplicas} of ${replicas} available, on ${nodes.join(', ')}`)
}
