/** Nodes that wait for their cloud: upstream's `cloud-node-controller` says what machine each is, and lets pods onto it. */
import { type Node, type NodeAddress, Nodes } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'

import { allow, type CloudLoop, EVENT_RULES, type LoopContext, watching } from './loop.ts'
import { type InstanceMetadata, type Instances } from './provider.ts'

const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized'
const PROVIDED_IP = 'alpha.kubernetes.io/provided-node-ip'

export interface NodeLoopOptions {
  readonly instances: Instances
  /** How often addresses are asked for. */
  readonly updateMs: number
  readonly workers?: number
}

const isWaiting = ({ spec }: Node): boolean => spec.taints?.some(({ key }) => key === UNINITIALIZED) ?? false

export function createNodeLoop({ instances, updateMs, workers = 1 }: NodeLoopOptions): CloudLoop {
  return {
    name: 'cloud-node-controller',
    aliases: ['cloud-node'],
    account: 'node-controller',
    component: 'cloud-node-controller',
    workers,
    watches: [watching(Nodes, (node) => (isWaiting(node) ? [node.metadata.name ?? ''] : []))],
    rules: [
      allow('', 'nodes', 'get list watch update patch'),
      allow('', 'nodes/status', 'update patch'),
      ...EVENT_RULES,
    ],
    async reconcile(name, context) {
      const node = context.cache.get(Nodes, name)
      if (node === undefined || !isWaiting(node)) return
      const metadata = await instances.metadata(node, context.signal)
      const { client, signal, event } = context
      const updated = await client.update(Nodes, initialized(node, metadata), { signal })
      await writeAddresses(updated, metadata, context)
      event(node, { type: 'Normal', reason: 'Synced', message: 'Node synced successfully' })
    },
    async run(context) {
      for (;;) {
        await sleep(context.clock, updateMs, context.signal, { background: true })
        for (const node of context.cache.list(Nodes)) await look(node, context)
      }
    },
  }
  async function look(node: Node, context: LoopContext): Promise<void> {
    if (isWaiting(node)) return
    try {
      await writeAddresses(node, await instances.metadata(node, context.signal), context)
    } catch (error) {
      context.log.error(error, 'Error getting instance metadata for node addresses', { node: node.metadata.name })
    }
  }
}

/** The node as its cloud knows it, open to pods. Pure. */
export function initialized(node: Node, { providerId, instanceType, zone, region, labels }: InstanceMetadata): Node {
  const both = (newer: string, older: string, value: string | undefined): Record<string, string> =>
    value === undefined || value === '' ? {} : { [newer]: value, [older]: value }
  return {
    ...node,
    metadata: {
      ...node.metadata,
      labels: {
        ...labels,
        ...node.metadata.labels,
        ...both('node.kubernetes.io/instance-type', 'beta.kubernetes.io/instance-type', instanceType),
        ...both('topology.kubernetes.io/zone', 'failure-domain.beta.kubernetes.io/zone', zone),
        ...both('topology.kubernetes.io/region', 'failure-domain.beta.kubernetes.io/region', region),
      },
    },
    spec: {
      ...node.spec,
      // What a node has said once stays.
      providerID: node.spec.providerID || providerId,
      taints: (node.spec.taints ?? []).filter(({ key }) => key !== UNINITIALIZED),
    },
  }
}

/**
 * What a node's addresses become: those of its cloud, with its own hostname where that names none. One that the kubelet was told to
 * use comes first, and must be among them. Pure; undefined: they stay.
 */
export function addressesFor(node: Node, { addresses = [] }: InstanceMetadata): readonly NodeAddress[] | undefined {
  if (addresses.length === 0) return undefined
  const own = node.status?.addresses ?? []
  const hostname = addresses.some(({ type }) => type === 'Hostname')
    ? []
    : own.filter(({ type }) => type === 'Hostname')
  const provided = node.metadata.annotations?.[PROVIDED_IP]
  const isFirst = ({ address }: NodeAddress): boolean => address === provided
  if (provided !== undefined && !addresses.some(isFirst))
    throw new Error(`failed to get node address from cloud provider that matches ip: ${provided}`)
  const ordered = [...addresses.filter(isFirst), ...addresses.filter((one) => !isFirst(one))]
  const wanted = [...ordered, ...hostname]
  return JSON.stringify(wanted) === JSON.stringify(own) ? undefined : wanted
}

async function writeAddresses(node: Node, metadata: InstanceMetadata, { client, signal }: LoopContext): Promise<void> {
  const addresses = addressesFor(node, metadata)
  if (addresses === undefined) return
  await client.updateStatus(Nodes, { ...node, status: { ...node.status, addresses: [...addresses] } }, { signal })
}
