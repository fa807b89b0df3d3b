/** Upstream's `cloud-node-controller`: sets cloud metadata on new nodes and removes their uninitialized taint. */
import { type Node, type NodeAddress, Nodes } from '#apis/core/v1.ts'
import { sleep } from '#lib/clock.ts'
import { formatIp, parseIp } from '#lib/net/cidr.ts'
import { rule, type Controller, EVENTS, type ControllerContext, related } from '#reconcile/controller.ts'

import { type InstanceMetadata, type Instances } from './provider.ts'

const UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized'
const PROVIDED_IP = 'alpha.kubernetes.io/provided-node-ip'
/** Deprecated labels with their replacements. The deprecated value wins, as upstream. */
const RENAMED = [
  ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'],
  ['failure-domain.beta.kubernetes.io/region', 'topology.kubernetes.io/region'],
  ['beta.kubernetes.io/instance-type', 'node.kubernetes.io/instance-type'],
] as const
/** Label names reserved for Kubernetes. */
const RESERVED = /(^|\.)(kubernetes|k8s)\.io\//

export interface NodeLoopOptions {
  readonly instances: Instances
  /** The period of address updates. */
  readonly updateMs: number
  readonly workers?: number
}

const isWaiting = ({ spec }: Node): boolean => spec.taints?.some(({ key }) => key === UNINITIALIZED) ?? false

export function createNodeLoop({ instances, updateMs, workers = 1 }: NodeLoopOptions): Controller {
  return {
    name: 'cloud-node-controller',
    aliases: ['cloud-node'],
    account: 'node-controller',
    component: 'cloud-node-controller',
    workers,
    watches: [
      related(
        Nodes,
        ({ metadata: { name = '' } }) => [name],
        (node, old) => isWaiting(node) || labelsToReconcile(node) !== undefined || isWaiting(old),
      ),
    ],
    rules: [rule('', 'nodes', 'get list watch update patch'), rule('', 'nodes/status', 'update patch'), EVENTS],
    async reconcile(name, context) {
      const node = context.cache.get(Nodes, name)
      if (node === undefined) return
      if (isWaiting(node)) await initialize(instances, node, context)
      else await reconcileLabels(node, context)
    },
    async run(context) {
      for (;;) {
        for (const node of Array.from(context.cache.list(Nodes))) await updateAddresses(node, context)
        await sleep(context.clock, updateMs, context.signal, { background: true })
      }
    },
  }
  async function updateAddresses(node: Node, context: ControllerContext): Promise<void> {
    if (isWaiting(node)) return
    try {
      const metadata = await instances.metadata(node, context.signal)
      if (metadata !== undefined) await writeAddresses(node, metadata, context)
    } catch (error) {
      context.log.error(error, 'Error getting instance metadata for node addresses', { node: node.metadata.name })
    }
  }
}

async function initialize(instances: Instances, node: Node, context: ControllerContext): Promise<void> {
  const { client, signal, event, log } = context
  const metadata = await instances.metadata(node, signal)
  if (metadata === undefined) {
    log.info("Waiting for the cloud provider's metadata of the node", { node: node.metadata.name })
    return
  }
  // Fails before the taint is removed, because no later step checks this again.
  if (!node.spec.providerID && metadata.providerId === '')
    throw new Error(`cloud provider does not set node provider ID for node ${node.metadata.name}`)
  addressesFor(node, metadata)
  const updated = await client.update(Nodes, initialized(node, metadata), { signal })
  await writeAddresses(updated, metadata, context)
  event(node, { type: 'Normal', reason: 'Synced', message: 'Node synced successfully' })
}

/** The node with cloud metadata and without the taint. Pure. */
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
      // An existing value stays.
      providerID: node.spec.providerID || providerId,
      taints: (node.spec.taints ?? []).filter(({ key }) => key !== UNINITIALIZED),
    },
  }
}

/** Undefined: no change is needed. Pure. */
export function labelsToReconcile({ metadata: { labels = {} } }: Node): Readonly<Record<string, string>> | undefined {
  const wrong = RENAMED.flatMap(([older, newer]): [string, string][] => {
    const value = labels[older]
    return value === undefined || labels[newer] === value ? [] : [[newer, value]]
  })
  return wrong.length === 0 ? undefined : Object.fromEntries(wrong)
}

async function reconcileLabels(node: Node, { client, signal }: ControllerContext): Promise<void> {
  const labels = labelsToReconcile(node)
  if (labels === undefined) return
  const where = { name: node.metadata.name ?? '' }
  await client.patch(Nodes, where, { type: 'strategic', value: { metadata: { labels } } }, { signal })
}

/**
 * The addresses of a node: those of the cloud, with its own hostname if the cloud has none. Addresses provided by the
 * kubelet come first, must be among them, and are the only ones of their type. Pure; undefined: unchanged.
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

/** `provided` is one address, or one of each family separated by a comma. Throws upstream's errors. */
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

/** Replaces the whole list, even if the kubelet changes the status meanwhile. */
async function writeAddresses(
  node: Node,
  metadata: InstanceMetadata,
  { client, signal }: ControllerContext,
): Promise<void> {
  const addresses = addressesFor(node, metadata)
  if (addresses === undefined) return
  const where = { name: node.metadata.name ?? '', subresource: 'status' }
  await client.patch(Nodes, where, { type: 'merge', value: { status: { addresses: [...addresses] } } }, { signal })
}
