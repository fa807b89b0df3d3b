/** Nodes that wait for their cloud: upstream's `cloud-node-controller` says what machine each is, and lets pods onto it. */
import { type Node, type NodeAddress, Nodes } from '#apis/core/v1.ts'
import { formatIp, parseIp } from '#lib/cidr.ts'
import { sleep } from '#lib/clock.ts'

import { allow, type CloudLoop, EVENT_RULES, type LoopContext, watching } from './loop.ts'
import { type InstanceMetadata, type Instances } from './provider.ts'

const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized'
const PROVIDED_IP = 'alpha.kubernetes.io/provided-node-ip'
/** Labels of before, each with the one that took its place. Where they differ the older one counts, as upstream has it. */
const RENAMED = [
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region'],
  ['beta.kubernetes.io/instance-type', 'node.kubernetes.io/instance-type'],
] as const
/** Names that are for Kubernetes to give. */
const RESERVED = /(^|\.)(kubernetes|k8s)\.io\//

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
    watches: [
      watching(
        Nodes,
        ({ metadata: { name = '' } }) => [name],
        (node, old) => isWaiting(node) || labelsToMend(node) !== undefined || isWaiting(old),
      ),
    ],
    rules: [
      allow('', 'nodes', 'get list watch update patch'),
      allow('', 'nodes/status', 'update patch'),
      ...EVENT_RULES,
    ],
    async reconcile(name, context) {
      const node = context.cache.get(Nodes, name)
      if (node === undefined) return
      if (isWaiting(node)) await initialize(instances, node, context)
      else await mendLabels(node, context)
    },
    async run(context) {
      for (;;) {
        for (const node of Array.from(context.cache.list(Nodes))) await look(node, context)
        await sleep(context.clock, updateMs, context.signal, { background: true })
      }
    },
  }
  async function look(node: Node, context: LoopContext): Promise<void> {
    if (isWaiting(node)) return
    try {
      const metadata = await instances.metadata(node, context.signal)
      if (metadata !== undefined) await writeAddresses(node, metadata, context)
    } catch (error) {
      context.log.error(error, 'Error getting instance metadata for node addresses', { node: node.metadata.name })
    }
  }
}

async function initialize(instances: Instances, node: Node, context: LoopContext): Promise<void> {
  const { client, signal, event, log } = context
  const metadata = await instances.metadata(node, signal)
  if (metadata === undefined) {
    log.info('The cloud says nothing of the node yet', { node: node.metadata.name })
    return
  }
  // What is wrong is found out before pods are let in: nobody would look again.
  if (!node.spec.providerID && metadata.providerId === '')
    throw new Error(`cloud provider does not set node provider ID for node ${node.metadata.name}`)
  addressesFor(node, metadata)
  const updated = await client.update(Nodes, initialized(node, metadata), { signal })
  await writeAddresses(updated, metadata, context)
  event(node, { type: 'Normal', reason: 'Synced', message: 'Node synced successfully' })
}

/** The node as its cloud knows it, open to pods. Pure. */
export function initialized(
  node: Node,
  { providerId, instanceType, zone, region, labels = {} }: InstanceMetadata,
): Node {
  const both = (newer: string, older: string, value: string | undefined): Record<string, string> =>
    value === undefined || value === '' ? {} : { [newer]: value, [older]: value }
  const further = Object.entries(labels).filter(([name]) => !RESERVED.test(name))
  return {
    ...node,
    metadata: {
      ...node.metadata,
      labels: {
        ...Object.fromEntries(further),
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

/** Undefined: they are as they should be. Pure. */
export function labelsToMend({ metadata: { labels = {} } }: Node): Readonly<Record<string, string>> | undefined {
  const wrong = RENAMED.flatMap(([older, newer]): [string, string][] => {
    const value = labels[older]
    return value === undefined || labels[newer] === value ? [] : [[newer, value]]
  })
  return wrong.length === 0 ? undefined : Object.fromEntries(wrong)
}

async function mendLabels(node: Node, { client, signal }: LoopContext): Promise<void> {
  const labels = labelsToMend(node)
  if (labels === undefined) return
  const where = { name: node.metadata.name ?? '' }
  await client.patch(Nodes, where, { type: 'strategic', value: { metadata: { labels } } }, { signal })
}

/**
 * What a node's addresses become: those of its cloud, with its own hostname where that names none. Those that the kubelet was told to
 * use come first, must be among them, and are the only ones of their type. Pure; undefined: they stay.
 */
export function addressesFor(node: Node, { addresses = [] }: InstanceMetadata): readonly NodeAddress[] | undefined {
  const preferred = withProvided(node.metadata.annotations?.[PROVIDED_IP], addresses)
  if (addresses.length === 0) return undefined
  const own = node.status?.addresses ?? []
  const hostname = addresses.some(({ type }) => type === 'Hostname')
    ? []
    : own.filter(({ type }) => type === 'Hostname')
  const wanted = [...preferred, ...hostname]
  return JSON.stringify(wanted) === JSON.stringify(own) ? undefined : wanted
}

/** `provided`: one address, or one of each family with a comma between. Throws upstream's errors. */
function withProvided(provided: string | undefined, addresses: readonly NodeAddress[]): readonly NodeAddress[] {
  if (provided === undefined) return addresses
  const first: NodeAddress[] = []
  for (const text of provided.split(',')) {
    const ip = parseIp(text.trim())
    if (ip === undefined) throw new Error(`failed to parse node IP "${provided}": could not parse "${text}"`)
    const found = addresses.filter(({ address }) => sameIp(address, formatIp(ip)))
    if (found.length === 0)
      throw new Error(`failed to get node address from cloud provider that matches ip: ${formatIp(ip)}`)
    first.push(...found)
  }
  const types = new Set(first.map(({ type }) => type))
  return [...first, ...addresses.filter(({ type }) => !types.has(type))]
}

function sameIp(text: string, wanted: string): boolean {
  const ip = parseIp(text)
  return ip !== undefined && formatIp(ip) === wanted
}

/** Replaces them all, whatever else the kubelet says of the node meanwhile. */
async function writeAddresses(node: Node, metadata: InstanceMetadata, { client, signal }: LoopContext): Promise<void> {
  const addresses = addressesFor(node, metadata)
  if (addresses === undefined) return
  const where = { name: node.metadata.name ?? '', subresource: 'status' }
  await client.patch(Nodes, where, { type: 'merge', value: { status: { addresses: [...addresses] } } }, { signal })
}
