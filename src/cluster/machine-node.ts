/**
 * The machine itself as a node of the cluster that it runs: a kubelet in the server's process, on a containerd of the
 * cluster's own. Everything of it is below the data directory; its port is for this machine only.
 */
import { mkdir } from 'node:fs/promises'

import { type Node, Nodes } from '#apis/core/v1.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { follow } from '#client/follow.ts'
import type { RunningServer } from '#control-plane/server.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { createPodCgroups } from '#kubelet/cgroups/pod-cgroups.ts'
import { withDefaults } from '#kubelet/configuration/defaults.ts'
import { shownConfiguration } from '#kubelet/configuration/showing.ts'
import { type Places, placesOf } from '#kubelet/containerd/places.ts'
import { type Containerd, startContainerd } from '#kubelet/containerd/start.ts'
import { type KubeletOptions, startKubelet } from '#kubelet/kubelet.ts'
import { type Machine, readMachine } from '#kubelet/machine/machine.ts'
import { stopAll } from '#kubelet/stop-all.ts'
import { nthAddress, parseCidr } from '#lib/cidr.ts'
import { createIpRoute } from '#lib/iproute.ts'
import type { Authority } from '#lib/x509/authority.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { ensureBridge } from '#network/bridge.ts'

import { issueFor, keepIssuing } from './kubelet-certificate.ts'
import { startMachineDns } from './machine-dns.ts'
import { containerLogsFolder, kubeletFolder, podLogsFolder } from './machine-folders.ts'
import { PROXY_USER, startMachineProxy } from './machine-proxy.ts'

export interface MachineNodePlan {
  /** Containers, volumes and logs of pods are below it. */
  readonly dataDir: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where its port is. The API server reaches it there, whatever address the Node tells. */
  readonly address: string
  /** Addresses of nodes, private to this machine. */
  readonly nodeCidr: string
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

/** As a KubeletConfiguration would say it; whatever else it could say has its default. */
const CONFIGURED = { clusterDomain: 'cluster.local', resolvConf: '/etc/resolv.conf', maxPods: 110 }
/** For containers when the cluster stops: somebody waits for it. */
const GRACE_SECONDS = 5
const PORT = 10_250
/** Those on which one listens, and which nobody has. */
const ANY = ['0.0.0.0', '::']

/** Returns when the node is registered. It ends before what is on `closing` already, and its containers with it. */
export async function startMachineNode(
  { server }: Pick<RunningServer, 'server'>,
  around: Around,
  closing: AsyncDisposableStack,
): Promise<MachineNode> {
  const rootDir = kubeletFolder(around.dataDir)
  await mkdir(rootDir, { recursive: true, mode: 0o750 })
  const [machine, containerd] = await Promise.all([
    readMachine({ rootDir, maxPods: CONFIGURED.maxPods }),
    startContainerd(around, closing),
  ])
  closing.defer(() => stopAll(containerd.runtime, GRACE_SECONDS, around.log))
  const name = machine.hostname
  const user = { name: `system:node:${name}`, uid: '', groups: ['system:nodes', 'system:authenticated'], extra: {} }
  const connect = { transport: server.clientAs(user) }
  const clusterDns = await startMachineDns({ server }, { ...around, ...CONFIGURED, node: name }, closing)
  const options = kubeletOptions(around, { name, machine, containerd, connect, rootDir, clusterDns }, closing)
  await startKubelet(options, closing).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error
    // Another cluster of this machine has it.
    return startKubelet({ ...options, serving: { ...options.serving, port: 0 } }, closing)
  })
  followAddresses(around, { name, containerd, connect }, closing)
  const asProxy = { transport: server.clientAs(PROXY_USER) }
  startMachineProxy({ ...around, nodeName: name, addresses: machine.addresses, connect: asProxy }, closing)
  const isEverywhere = ANY.includes(around.address)
  return {
    name,
    door: (asked) => (machine.addresses.includes(asked) && !isEverywhere ? around.address : undefined),
  }
}

interface Parts {
  readonly name: string
  readonly machine: Machine
  readonly containerd: Containerd
  readonly connect: Pick<ApiClientOptions, 'transport'>
  readonly rootDir: string
  readonly clusterDns: readonly string[]
}

function kubeletOptions(
  around: Around,
  { name, machine, containerd, connect, rootDir, clusterDns }: Parts,
  closing: AsyncDisposableStack,
): KubeletOptions {
  const { dataDir, address, authority, clock, random, log } = around
  const ips = [...new Set([...machine.addresses, address])].filter((ip) => !ANY.includes(ip))
  const names = { node: name, ips }
  const clientAuthority = authority.certificatePem
  const onError = (error: unknown): void => log.error(error, "The kubelet's certificate could not be renewed")
  const pods: KubeletOptions['pods'] = {
    cgroupDriver: 'cgroupfs',
    cgroupRoot: containerd.cgroupParent,
    rootDir,
    podLogsDir: podLogsFolder(dataDir),
    containerLogsDir: containerLogsFolder(dataDir),
    clusterDns,
    ...CONFIGURED,
  }
  return {
    name,
    clock,
    random,
    log,
    connect,
    runtime: containerd.runtime,
    machine,
    pods,
    cgroups: createPodCgroups({ root: '/sys/fs/cgroup', version: machine.cgroupVersion, facts: pods, clock }),
    serving: {
      ...issueFor(authority, names),
      address,
      port: PORT,
      clientAuthority,
      allowsAnonymous: false,
      follow: (changed) => {
        const issuing = keepIssuing(authority, names, { clock, onError }, (next) =>
          changed({ ...next, clientAuthority }),
        )
        closing.defer(() => issuing.stop())
      },
    },
    configuration: shownConfiguration(
      withDefaults({ ...CONFIGURED, clusterDNS: clusterDns, address, cgroupRoot: containerd.cgroupParent }),
    ),
  }
}

/** Pods have addresses of those that the controllers gave the node. */
function followAddresses(
  { clock, random, log, dataDir }: Around,
  { name, containerd, connect }: Pick<Parts, 'name' | 'containerd' | 'connect'>,
  closing: AsyncDisposableStack,
): void {
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  const places = placesOf(dataDir)
  const client = new ApiClient({ ...connect, clock, userAgent: 'kubelet' })
  const failed = (error: unknown): void => log.error(error, 'Addresses for pods could not be had')
  let last = ''
  const look = (node: Node | undefined): void => {
    const { podCIDR, podCIDRs = podCIDR === undefined ? [] : [podCIDR] } = node?.spec ?? {}
    if (podCIDRs.length === 0 || podCIDRs.join() === last) return
    last = podCIDRs.join()
    void openPodNetwork(podCIDRs, containerd, places).catch(failed)
  }
  const selection = { fieldSelector: `metadata.name=${name}` }
  void follow(
    { client, kind: Nodes, random, signal: stop.signal, selection },
    {
      replace: ([node]) => look(node),
      change: ({ object }: ObjectEvent<Node>) => look(object),
      failed,
    },
  )
}

/** The bridge is there before the first pod: others listen on its address. */
async function openPodNetwork(cidrs: readonly string[], containerd: Containerd, places: Places): Promise<void> {
  const blocks = cidrs.flatMap((text) => parseCidr(text) ?? [])
  const addresses = blocks.map((block) => `${nthAddress(block, 1)}/${block.prefixLength}`)
  await ensureBridge(createIpRoute(), { name: places.network, addresses })
  await containerd.setPodCidrs(cidrs)
}
