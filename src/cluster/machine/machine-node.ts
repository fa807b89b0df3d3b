/**
 * The machine as a node of the cluster that it runs: a kubelet in the server's process with a private containerd. All data is
 * below the data directory; the kubelet's port is local.
 */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'

import { Nodes } from '#apis/core/v1.ts'
import { containerdPaths } from '#containerd/paths.ts'
import { startContainerd } from '#containerd/start.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { KubeletOptions } from '#kubelet/kubelet-options.ts'
import { startKubelet } from '#kubelet/kubelet.ts'
import { type Machine, readMachine } from '#kubelet/machine/machine.ts'
import { stopAll } from '#kubelet/runtime/stop-all.ts'
import type { Authority } from '#lib/x509/authority.ts'
import type { Flannel } from '#network/flannel/daemon.ts'
import type { FlannelBackend } from '#network/flannel/net-conf.ts'

import { issueFor, keepIssuing } from '../kubelet-certificate.ts'
import { nodeAddresses } from '../runtime-file.ts'
import { CONFIGURED, followAddresses, kubeletOptions } from './container-node.ts'
import { startMachineDns } from './machine-dns.ts'
import { ensureFlannelAccess, FLANNEL_USER, startMachineFlannel } from './machine-flannel.ts'
import { kubeletFolder } from './machine-folders.ts'
import { startMachinePolicies } from './machine-policies.ts'
import { familiesOf, PROXY_USER, startMachineProxy } from './machine-proxy.ts'
import { nodesFolder } from './node-namespace.ts'

export interface MachineNodePlan {
  /** The parent of containers, volumes and pod logs. */
  readonly dataDir: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The address of its port. The API server uses it, whatever address the Node has. */
  readonly address: string
  /** The private range of nodes on this machine. */
  readonly nodeCidr: string
  /** The range of all pods. */
  readonly podCidr: string
  /** flannel's backend. */
  readonly backend: FlannelBackend
  /** `--stub-domains`. */
  readonly stubDomains: readonly string[]
  /** The number of extra nodes, and the program of their processes. */
  readonly further: { readonly many: number; readonly program: string }
  /** Signs the kubelet's certificates and those of its trusted callers. */
  readonly authority: Authority
}

export interface MachineNode {
  readonly name: string
  /** Implements `Network.kubeletDoor`. */
  kubeletAddress(address: string): string | undefined
}

export interface NodeSurroundings extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log' | 'readFile'> {
  /** The range of Services. */
  readonly serviceCidr: string
}

type NodeOptions = MachineNodePlan & NodeSurroundings

/** The grace period of containers when the cluster stops, because a user waits. */
const GRACE_SECONDS = 5
const PORT = 10_250
/** Wildcard listen addresses, which no node has. */
const ANY = ['0.0.0.0', '::']

/** Resolves when the node is registered. It and its containers stop before everything already on `closing`. */
export async function startMachineNode(
  { server, port }: Pick<RunningServer, 'server' | 'port'>,
  options: NodeOptions,
  closing: AsyncDisposableStack,
): Promise<MachineNode> {
  const { further, nodeCidr } = options
  const rootDir = kubeletFolder(options.dataDir)
  await mkdir(rootDir, { recursive: true, mode: 0o750 })
  const [inner = '', ...innerToo] = nodeAddresses(nodeCidr)
  const [found, containerd] = await Promise.all([
    // With extra nodes, all use the node network.
    readMachine({ rootDir, maxPods: CONFIGURED.maxPods, ...(further.many > 0 && { address: inner }) }),
    startContainerd(options, closing),
  ])
  const machine = { ...found, addresses: [...found.addresses, ...innerToo] }
  const name = machine.hostname
  await startMachinePolicies({ server }, { ...options, node: name }, closing)
  closing.defer(() => stopAll(containerd.runtime, GRACE_SECONDS, options.log))
  const user = { name: `system:node:${name}`, uid: '', groups: ['system:nodes', 'system:authenticated'], extra: {} }
  const connect = { transport: server.clientAs(user) }
  const clusterDns = await startMachineDns({ server }, { ...options, ...CONFIGURED, node: name }, closing)
  const flannel = await openFlannel({ server }, options, name, closing)
  const node = { ...options, name, machine, containerd, connect, clusterDns }
  const kubelet = kubeletOptions({ ...node, serving: servingOf(options, { name, machine }, closing) })
  await startKubelet(kubelet, closing).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error
    // Another cluster on this machine uses the port.
    return startKubelet({ ...kubelet, serving: { ...kubelet.serving, port: 0 } }, closing)
  })
  followAddresses({ ...node, networkReady: flannel.ready }, closing)
  const asProxy = { transport: server.clientAs(PROXY_USER) }
  const families = familiesOf(options.podCidr)
  await startMachineProxy(
    { ...options, nodeName: name, addresses: machine.addresses, families, connect: asProxy },
    closing,
  )
  await startOthers({ server }, options, { server: `https://${inner}:${port}`, clusterDns: node.clusterDns }, closing)
  const isEverywhere = ANY.includes(options.address)
  return {
    name,
    kubeletAddress: (address) => (machine.addresses.includes(address) && !isEverywhere ? options.address : undefined),
  }
}

async function openFlannel(
  running: Pick<RunningServer, 'server'>,
  options: NodeOptions,
  node: string,
  closing: AsyncDisposableStack,
): Promise<Flannel> {
  const { dataDir, nodeCidr } = options
  const { nodeBridge } = containerdPaths(dataDir)
  await ensureFlannelAccess(running)
  const external = { name: nodeBridge, addresses: nodeAddresses(nodeCidr), cidr: nodeCidr }
  const connect = { transport: running.server.clientAs(FLANNEL_USER) }
  return startMachineFlannel({ ...options, node, external, connect }, closing)
}

function servingOf(
  { address, authority, clock, log }: NodeOptions,
  { name, machine }: { readonly name: string; readonly machine: Machine },
  closing: AsyncDisposableStack,
): KubeletOptions['serving'] {
  const ips = [...new Set([...machine.addresses, address])].filter((ip) => !ANY.includes(ip))
  const names = { node: name, ips }
  const clientAuthority = authority.certificatePem
  const onError = (error: unknown): void => log.error(error, "Failed to renew the kubelet's client certificate")
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

/** Removes extra nodes of an earlier run that are no longer wanted. */
async function dropOthers({ server }: Pick<RunningServer, 'server'>, options: NodeOptions): Promise<void> {
  const { removeExtraNodes } = await import('./machine-leftovers.ts')
  // The machine is the first node.
  const gone = await removeExtraNodes(options, options.further.many + 1)
  for (const name of gone) await server.registry.writer.delete(Nodes, { name })
}

/** Loaded only if needed. */
async function startOthers(
  running: Pick<RunningServer, 'server'>,
  options: NodeOptions,
  known: { readonly server: string; readonly clusterDns: readonly string[] },
  closing: AsyncDisposableStack,
): Promise<void> {
  const { further, dataDir, podCidr, backend } = options
  if (existsSync(nodesFolder(dataDir))) await dropOthers(running, options)
  if (further.many === 0) return
  const { startExtraNodes } = await import('./extra-nodes.ts')
  const task = { ...known, podCidr, backend }
  const { nodeBridge } = containerdPaths(dataDir)
  const places = await startExtraNodes({ ...options, ...further, nodeBridge, task }, closing)
  for (const { name, dataDir: own, within } of places)
    await startMachinePolicies(running, { ...options, node: name, dataDir: own, within, keepsRules: true }, closing)
}
