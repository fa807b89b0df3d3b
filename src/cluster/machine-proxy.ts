/**
 * Services on a machine of the cluster: kube-proxy beside the kubelet, whoever runs it. Its table is named after the data directory,
 * so that clusters on one machine do not meet, and `down` and `reset` find it.
 */
import type { User } from '#apiserver/registry/resource.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { placesOf } from '#kubelet/containerd/places.ts'
import { createRegistry } from '#lib/metrics.ts'
import type { IpFamily } from '#model/services.ts'
import { systemConntrack } from '#proxy/conntrack.ts'
import { localByBridge } from '#proxy/local-detector.ts'
import { createNftBackend } from '#proxy/nftables/backend.ts'
import { createProxyMeters } from '#proxy/proxy-metrics.ts'
import { type RunningProxy, startProxy } from '#proxy/proxy.ts'

import { rangesOf } from './asked-ranges.ts'

export interface MachineProxyPlan extends Pick<Surroundings, 'clock' | 'random' | 'log'> {
  readonly dataDir: string
  readonly nodeName: string
  /** Of the node. */
  readonly addresses: readonly string[]
  /** As whom it asks: `PROXY_USER` may do what it needs. */
  readonly connect: Pick<ApiClientOptions, 'transport' | 'server'>
  readonly families: readonly IpFamily[]
}

export const PROXY_USER: User = { name: 'system:kube-proxy', uid: '', groups: ['system:authenticated'], extra: {} }

/** What all bridges of clusters on a machine begin with: see `placesOf`. */
const BRIDGES = 'hk-'
/** Bit 14, as upstream. */
const MASQUERADE_MARK = '0x00004000'

/** Of a list of ranges. */
export function familiesOf(cidrs: string): readonly IpFamily[] {
  return rangesOf(cidrs).map((range) => (range.includes(':') ? 'IPv6' : 'IPv4'))
}

/** Rules go when it ends, as containers do. */
export function startMachineProxy(plan: MachineProxyPlan, closing: AsyncDisposableStack): RunningProxy {
  const { dataDir, nodeName, addresses, connect, clock, random, families } = plan
  const log = plan.log.withName('kube-proxy')
  const { network } = placesOf(dataDir)
  const detector = localByBridge(network)
  const nodeIpOf = (family: IpFamily): string =>
    addresses.find((one) => one.includes(':') === (family === 'IPv6')) ?? ''
  const backends = families.map((family) =>
    createNftBackend({
      clock,
      settings: {
        family,
        table: `${network}-proxy`,
        masqueradeMark: MASQUERADE_MARK,
        masqueradeAll: false,
        detector,
        nodePortIps: undefined,
        serviceCidrs: [],
        others: { prefix: BRIDGES, own: network },
        nodeIp: nodeIpOf(family),
      },
    }),
  )
  const client = new ApiClient({ ...connect, clock, userAgent: 'kube-proxy' })
  const meters = createProxyMeters(createRegistry())
  const beside = { conntrack: systemConntrack(), healthHosts: addresses, removesRules: true }
  return startProxy({ client, nodeName, backends, clock, random, log, meters, ...beside }, closing)
}
