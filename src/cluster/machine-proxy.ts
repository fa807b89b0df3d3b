/**
 * kube-proxy on a node of the cluster, beside the kubelet. Its table is named after the data directory, so that clusters on one
 * machine do not meet, and `down` and `reset` find it.
 */
import type { Node } from '#apis/core/v1.ts'
import type { User } from '#apiserver/registry/resource.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { bracketed } from '#control-plane/addresses.ts'
import type { Surroundings } from '#control-plane/site.ts'
import { placesOf } from '#kubelet/containerd/places.ts'
import type { PagesOptions } from '#lib/http/pages.ts'
import { readProcess, registerProcessMetrics } from '#lib/metrics-process.ts'
import { createRegistry, type Registry } from '#lib/metrics.ts'
import { durationMs } from '#meta/duration.ts'
import type { IpFamily } from '#model/services.ts'
import { shownProxyConfiguration, withProxyDefaults } from '#proxy/configuration.ts'
import { systemConntrack } from '#proxy/conntrack.ts'
import type { HealthFacts } from '#proxy/health.ts'
import { localByBridge } from '#proxy/local-detector.ts'
import { createNftBackend } from '#proxy/nftables/backend.ts'
import { type HealthPages, serveHealth, serveStatus } from '#proxy/ports.ts'
import { createProxyMeters } from '#proxy/proxy-metrics.ts'
import { type RunningProxy, startProxy } from '#proxy/proxy.ts'
import { applyConntrackSettings } from '#proxy/system-settings.ts'

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

const CONFIGURATION = withProxyDefaults({ mode: 'nftables' })
const SYNC_MS = durationMs(CONFIGURATION.nftables.syncPeriod)
const HEALTHZ_PORT = 10_256
const LOOPBACK = '127.0.0.1'

/** What all bridges of clusters on a machine begin with: see `placesOf`. */
const BRIDGES = 'hk-'
/** Bit 14, as upstream. */
const MASQUERADE_MARK = '0x00004000'

/** Of a list of ranges. */
export function familiesOf(cidrs: string): readonly IpFamily[] {
  return rangesOf(cidrs).map((range) => (range.includes(':') ? 'IPv6' : 'IPv4'))
}

/** Rules go when it ends, as containers do. Resolves when it serves its ports. */
export async function startMachineProxy(plan: MachineProxyPlan, closing: AsyncDisposableStack): Promise<RunningProxy> {
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
  const registry = createRegistry()
  registerProcessMetrics(registry, readProcess(clock))
  const meters = createProxyMeters(registry)
  let node: Node | undefined
  const onNode = (changed: Node): void => {
    node = changed
  }
  const beside = { conntrack: systemConntrack(), healthHosts: addresses, removesRules: true, onNode }
  await applyConntrackSettings(CONFIGURATION.conntrack, log)
  const running = startProxy({ client, nodeName, backends, clock, random, log, meters, ...beside }, closing)
  const { standing } = running.keeper
  const facts = (): HealthFacts => ({ standing, syncMs: SYNC_MS, nowMs: clock.now() })
  await servePorts({ addresses, registry, health: { meters, facts, node: () => node } }, { clock, log, closing })
  return running
}

interface ProxyPorts {
  readonly addresses: readonly string[]
  readonly registry: Registry
  readonly health: HealthPages
}

/** Upstream's ports. Where another cluster of the machine has one of them, the log reports it and the proxy goes on. */
async function servePorts(
  { addresses, registry, health }: ProxyPorts,
  around: Omit<PagesOptions, 'isFatal'>,
): Promise<void> {
  const options = { ...around, isFatal: false }
  for (const host of new Set([LOOPBACK, ...addresses]))
    await serveHealth(`${bracketed(host)}:${HEALTHZ_PORT}`, health, options)
  const { mode } = CONFIGURATION
  const pages = { registry, mode, configz: shownProxyConfiguration(CONFIGURATION) }
  await serveStatus(CONFIGURATION.metricsBindAddress, pages, options)
}
