/** The pod network of a worker node: writes its two configuration files and removes conflicting networks. */
import { findAdapter } from './adapters.ts'
import type { Adapter } from './host.ts'
import { RetryError } from './outcome.ts'
import { type NodeSettings, type PodNetworkKind, podNetworkKind } from './settings.ts'
import { pause, restartProxy, type Worker } from './worker.ts'

const NETWORK_VARIABLE = 'KUBE_NETWORK'

/** flannel's network configuration. */
export function netConf({ clusterCidr, vni, port }: NodeSettings, { name, backend }: PodNetworkKind): object {
  const options =
    backend === 'vxlan' ? { ...(vni !== undefined && { VNI: vni }), ...(port !== undefined && { Port: port }) } : {}
  return { Network: clusterCidr, Backend: { Name: name, Type: backend, ...options } }
}

export type Subnet = Pick<Adapter, 'address' | 'prefixLength'>

/** The CNI configuration for the container runtime of a Windows machine. */
export function windowsCni(settings: NodeSettings, { name }: PodNetworkKind, subnet: Subnet): object {
  const { clusterCidr, serviceCidr, dnsServiceIp, clusterDomain, nodeIp, cniMode } = settings
  const isBridge = cniMode === 'win-bridge'
  const exceptions = [clusterCidr, serviceCidr, ...(isBridge ? [subnetOf(subnet)] : [])]
  const route = (DestinationPrefix: string): object => ({
    Name: 'EndpointPolicy',
    Value: { Type: 'ROUTE', DestinationPrefix, NeedEncap: true },
  })
  return {
    cniVersion: '0.2.0',
    name,
    type: 'flannel',
    capabilities: { dns: true },
    delegate: {
      type: cniMode,
      dns: { Nameservers: [dnsServiceIp], Search: [`svc.${clusterDomain}`] },
      policies: [
        { Name: 'EndpointPolicy', Value: { Type: 'OutBoundNAT', ExceptionList: exceptions } },
        route(serviceCidr),
        ...(isBridge ? [route(`${nodeIp}/32`)] : []),
      ],
    },
  }
}

/** The network of an address: `10.1.2.0/24`. */
export function subnetOf({ address, prefixLength }: Subnet): string {
  const bits = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  const size = 2 ** (32 - prefixLength)
  const first = Math.floor(bits / size) * size
  return `${[24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')}/${prefixLength}`
}

/** Networks of these types may be removed. */
export const TYPES_OF_PODS: ReadonlySet<string> = new Set(['l2bridge', 'overlay', 'vxlan', 'host-gw'])

/** Removes conflicting networks and writes both files. */
export async function configurePodNetwork(worker: Worker): Promise<void> {
  const { host, layout, settings } = worker
  const kind = podNetworkKind(settings)
  const networks = await host.network.pods.list()
  const wrong = networks.filter(
    ({ name, type }) => TYPES_OF_PODS.has(type) && !(name === kind.name && type === kind.type),
  )
  for (const { id, name } of wrong) {
    host.say(`removing the network ${name}`)
    await host.network.pods.remove(id)
  }
  if (wrong.length > 0) await restartProxy(worker)
  await host.files.write(layout.netConf, JSON.stringify(netConf(settings, kind)))
  // On Linux the kubelet configures the runtime after the node has a pod range.
  if (host.system === 'windows')
    await host.files.write(layout.cniConf, JSON.stringify(windowsCni(settings, kind, await findAdapter(worker))))
  await host.environment.set(NETWORK_VARIABLE, kind.name)
}

/** Waits for the network that flanneld creates. */
export async function untilPodNetwork(worker: Worker): Promise<void> {
  const { host, settings, timings } = worker
  const kind = podNetworkKind(settings)
  const { rounds, everyMs } = timings.network
  for (let round = 0; round < rounds; round++) {
    await pause(worker, everyMs)
    const found = (await host.network.pods.list()).find(({ name }) => name === kind.name)
    if (found === undefined) continue
    if (found.type === kind.type) return
    await host.processes.kill('flanneld')
    throw new RetryError(`The network ${kind.name} is of type ${found.type}, not ${kind.type}`)
  }
  throw new RetryError(`flanneld created no network ${kind.name}`)
}
