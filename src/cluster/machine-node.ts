/**
 * The machine itself as a node of the cluster that it runs: a kubelet in the server's process, on a containerd of the
 * cluster's own. Everything of it is below the data directory; its port is for this machine only.
 */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'

import { Nodes } from '#apis/core/v1.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { placesOf } from '#kubelet/containerd/places.ts'
import { startContainerd } from '#kubelet/containerd/start.ts'
import type { KubeletOptions } from '#kubelet/kubelet-options.ts'
import { startKubelet } from '#kubelet/kubelet.ts'
import { type Machine, readMachine } from '#kubelet/machine/machine.ts'
import { stopAll } from '#kubelet/stop-all.ts'
import type { Authority } from '#lib/x509/authority.ts'
import type { Flannel } from '#network/flannel/daemon.ts'
import type { FlannelBackend } from '#network/flannel/net-conf.ts'

import { CONFIGURED, followAddresses, kubeletOptions } from './container-node.ts'
import { issueFor, keepIssuing } from './kubelet-certificate.ts'
import { startMachineDns } from './machine-dns.ts'
import { ensureFlannelAccess, FLANNEL_USER, startMachineFlannel } from './machine-flannel.ts'
import { kubeletFolder } from './machine-folders.ts'
import { startMachinePolicies } from './machine-policies.ts'
import { familiesOf, PROXY_USER, startMachineProxy } from './machine-proxy.ts'
import { nodesFolder } from './node-namespace.ts'
import { nodeAddresses } from './runtime-file.ts'

export interface MachineNodePlan {
  /** Containers, volumes and logs of pods are below it. */
  readonly dataDir: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where its port is. The API server reaches it there, whatever address the Node tells. */
  readonly address: string
  /** Addresses of nodes, private to this machine. */
  readonly nodeCidr: string
  /** Addresses of all pods. */
  readonly podCidr: string
  /** How packets get from node to node. */
  readonly backend: FlannelBackend
  /** Domains whose names others know, as `--stub-domains` has them. */
  readonly stubDomains: readonly string[]
  /** How many nodes there are on this machine beside it, and the program that is one of them. */
  readonly further: { readonly many: number; readonly program: string }
  /** Signs what the kubelet shows the API server, and those whom it may believe. */
  readonly authority: Authority
}

export interface MachineNode {
  readonly name: string
  /** As `Network.kubeletDoor` is asked. */
  door(address: string): string | undefined
}

export interface NodeSurroundings extends Pick<Surroundings, 'clock' | 'random' | 'log' | 'readFile'> {
  /** Addresses of Services. */
  readonly serviceCidr: string
}

type Around = MachineNodePlan & NodeSurroundings

/** For containers when the cluster stops: somebody waits for it. */
const GRACE_SECONDS = 5
const PORT = 10_250
/** Those on which one listens, and which nobody has. */
const ANY = ['0.0.0.0', '::']

/** Returns when the node is registered. It ends before what is on `closing` already, and its containers with it. */
export async function startMachineNode(
  { server, port }: Pick<RunningServer, 'server' | 'port'>,
  around: Around,
  closing: AsyncDisposableStack,
): Promise<MachineNode> {
  const { further, nodeCidr } = around
  const rootDir = kubeletFolder(around.dataDir)
  await mkdir(rootDir, { recursive: true, mode: 0o750 })
  const [inner = '', ...innerToo] = nodeAddresses(nodeCidr)
  const [found, containerd] = await Promise.all([
    // Where there are others, it is reached as they are.
    readMachine({ rootDir, maxPods: CONFIGURED.maxPods, ...(further.many > 0 && { address: inner }) }),
    startContainerd(around, closing),
  ])
  const machine = { ...found, addresses: [...found.addresses, ...innerToo] }
  const name = machine.hostname
  await startMachinePolicies({ server }, { ...around, node: name }, closing)
  closing.defer(() => stopAll(containerd.runtime, GRACE_SECONDS, around.log))
  const user = { name: `system:node:${name}`, uid: '', groups: ['system:nodes', 'system:authenticated'], extra: {} }
  const connect = { transport: server.clientAs(user) }
  const clusterDns = await startMachineDns({ server }, { ...around, ...CONFIGURED, node: name }, closing)
  const flannel = await openFlannel({ server }, around, name, closing)
  const node = { ...around, name, machine, containerd, connect, clusterDns }
  const options = kubeletOptions({ ...node, serving: servingOf(around, { name, machine }, closing) })
  await startKubelet(options, closing).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error
    // Another cluster of this machine has it.
    return startKubelet({ ...options, serving: { ...options.serving, port: 0 } }, closing)
  })
  followAddresses({ ...node, networkReady: flannel.ready }, closing)
  const asProxy = { transport: server.clientAs(PROXY_USER) }
  const families = familiesOf(around.podCidr)
  await startMachineProxy(
    { ...around, nodeName: name, addresses: machine.addresses, families, connect: asProxy },
    closing,
  )
  await startOthers({ server }, around, { server: `https://${inner}:${port}`, clusterDns: node.clusterDns }, closing)
  const isEverywhere = ANY.includes(around.address)
  return {
    name,
    door: (asked) => (machine.addresses.includes(asked) && !isEverywhere ? around.address : undefined),
  }
}

async function openFlannel(
  running: Pick<RunningServer, 'server'>,
  around: Around,
  node: string,
  closing: AsyncDisposableStack,
): Promise<Flannel> {
  const { dataDir, nodeCidr } = around
  const { nodeBridge } = placesOf(dataDir)
  await ensureFlannelAccess(running)
  const external = { name: nodeBridge, addresses: nodeAddresses(nodeCidr), cidr: nodeCidr }
  const connect = { transport: running.server.clientAs(FLANNEL_USER) }
  return startMachineFlannel({ ...around, node, external, connect }, closing)
}

function servingOf(
  { address, authority, clock, log }: Around,
  { name, machine }: { readonly name: string; readonly machine: Machine },
  closing: AsyncDisposableStack,
): KubeletOptions['serving'] {
  const ips = [...new Set([...machine.addresses, address])].filter((ip) => !ANY.includes(ip))
  const names = { node: name, ips }
  const clientAuthority = authority.certificatePem
  const onError = (error: unknown): void => log.error(error, "The kubelet's certificate could not be renewed")
  return {
    ...issueFor(authority, names),
    address,
    port: PORT,
    clientAuthority,
    allowsAnonymous: false,
    follow: (changed) => {
      const issuing = keepIssuing(authority, names, { clock, onError }, (next) => changed({ ...next, clientAuthority }))
      closing.defer(() => issuing.stop())
    },
  }
}

/** Those that there are no more, when there were more before. */
async function dropOthers({ server }: Pick<RunningServer, 'server'>, around: Around): Promise<void> {
  const { removeFurtherNodes } = await import('./machine-leftovers.ts')
  // The machine is the first.
  const gone = await removeFurtherNodes(around, around.further.many + 1)
  for (const name of gone) await server.registry.writer.delete(Nodes, { name })
}

/** Who has none does not load them. */
async function startOthers(
  running: Pick<RunningServer, 'server'>,
  around: Around,
  known: { readonly server: string; readonly clusterDns: readonly string[] },
  closing: AsyncDisposableStack,
): Promise<void> {
  const { further, dataDir, podCidr, backend } = around
  if (existsSync(nodesFolder(dataDir))) await dropOthers(running, around)
  if (further.many === 0) return
  const { startFurtherNodes } = await import('./further-nodes.ts')
  const task = { ...known, podCidr, backend }
  const { nodeBridge } = placesOf(dataDir)
  const places = await startFurtherNodes({ ...around, ...further, nodeBridge, task }, closing)
  for (const { name, dataDir: own, within } of places)
    await startMachinePolicies(running, { ...around, node: name, dataDir: own, within, keepsRules: true }, closing)
}
