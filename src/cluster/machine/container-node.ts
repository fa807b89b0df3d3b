/** Functions that nodes with containers share, whether they run in the server's process or in a separate one. */
import { writeFile } from 'node:fs/promises'

import { type Node, Nodes } from '#apis/core/v1.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { follow } from '#client/reflector.ts'
import { type ContainerdPaths, containerdPaths } from '#containerd/paths.ts'
import type { Containerd } from '#containerd/start.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import { openCgroups } from '#kubelet/cgroups/open-cgroups.ts'
import { withDefaults } from '#kubelet/configuration/defaults.ts'
import { shownConfiguration } from '#kubelet/configuration/printing.ts'
import type { KubeletOptions } from '#kubelet/kubelet-options.ts'
import type { Machine } from '#kubelet/machine/machine.ts'
import { kubeletZPages } from '#kubelet/server/kubelet-zpages.ts'
import { nthAddress, parseCidr } from '#lib/net/cidr.ts'
import { createIpRoute } from '#lib/net/iproute.ts'
import type { ObjectEvent } from '#meta/watch.ts'
import { ensureBridge } from '#network/bridge.ts'

import { POD_MTU } from './machine-flannel.ts'
import { containerLogsFolder, kubeletFolder, podLogsFolder } from './machine-folders.ts'

/** The KubeletConfiguration fields; others have their defaults. */
export const CONFIGURED: {
  readonly clusterDomain: string
  readonly resolvConf: string
  readonly maxPods: number
} = { clusterDomain: 'cluster.local', resolvConf: '/etc/resolv.conf', maxPods: 110 }

export type NodeConnect = Pick<ApiClientOptions, 'transport' | 'server'>

export interface ContainerNode extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log'> {
  readonly dataDir: string
  readonly name: string
  readonly machine: Machine
  readonly containerd: Containerd
  /** As `system:node:<name>`. */
  readonly connect: NodeConnect
  readonly clusterDns: readonly string[]
  readonly serving: KubeletOptions['serving']
}

export function kubeletOptions(node: ContainerNode): KubeletOptions {
  const { dataDir, name, machine, containerd, connect, clusterDns, serving, clock, random, log } = node
  const pods: KubeletOptions['pods'] = {
    cgroupDriver: 'cgroupfs',
    cgroupRoot: containerd.cgroupParent,
    rootDir: kubeletFolder(dataDir),
    podLogsDir: podLogsFolder(dataDir),
    containerLogsDir: containerLogsFolder(dataDir),
    clusterDns,
    killsContainersWhole: machine.cgroupVersion === 2,
    ...CONFIGURED,
  }
  const shown = { ...CONFIGURED, clusterDNS: clusterDns, address: serving.address, cgroupRoot: containerd.cgroupParent }
  return {
    name,
    clock,
    random,
    log,
    connect,
    runtime: containerd.runtime,
    machine,
    pods,
    cgroups: openCgroups({ machine, facts: pods, clock, log }),
    serving,
    configuration: shownConfiguration(withDefaults(shown)),
    zpages: kubeletZPages({ clock, random, isEnabled: (gate) => gate === 'ComponentStatusz' }),
    logDirectory: '/var/log',
  }
}

export interface FollowedNode extends Pick<ContainerNode, 'dataDir' | 'clock' | 'random' | 'log' | 'connect' | 'name'> {
  readonly containerd: Pick<Containerd, 'setPodCidrs'>
  /** Pods start after this resolves, because they need the network. */
  readonly networkReady: Promise<void>
}

/** Configures the pod network with the CIDRs that the controllers assign to the node. */
export function followAddresses(node: FollowedNode, closing: AsyncDisposableStack): void {
  const { clock, random, log, dataDir, connect, name, containerd, networkReady } = node
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  const places = containerdPaths(dataDir)
  const client = new ApiClient({ ...connect, clock, userAgent: 'kubelet' })
  const failed = (error: unknown): void => log.error(error, 'Failed to allocate the pod network')
  let last = ''
  const open = async (cidrs: readonly string[]): Promise<void> => {
    await openPodNetwork(cidrs, places)
    await networkReady
    await containerd.setPodCidrs(cidrs)
  }
  const look = (found: Node | undefined): void => {
    const { podCIDR, podCIDRs = podCIDR === undefined ? [] : [podCIDR] } = found?.spec ?? {}
    if (podCIDRs.length === 0 || podCIDRs.join() === last) return
    last = podCIDRs.join()
    void open(podCIDRs).catch(failed)
  }
  const selection = { fieldSelector: `metadata.name=${name}` }
  void follow(
    { client, kind: Nodes, random, signal: stop.signal, selection },
    {
      replace: ([found]) => look(found),
      change: ({ object }: ObjectEvent<Node>) => look(object),
      failed,
    },
  )
}

/** Creates the bridge before the first pod, because other components listen on its address. Enables IP forwarding. */
async function openPodNetwork(cidrs: readonly string[], places: ContainerdPaths): Promise<void> {
  const blocks = cidrs.flatMap((text) => parseCidr(text) ?? [])
  const addresses = blocks.map((block) => `${nthAddress(block, 1)}/${block.prefixLength}`)
  await ensureBridge(createIpRoute(), { name: places.network, addresses, mtu: POD_MTU })
  const files = { 4: '/proc/sys/net/ipv4/ip_forward', 6: '/proc/sys/net/ipv6/conf/all/forwarding' }
  for (const { family } of blocks) await writeFile(files[family], '1')
}
