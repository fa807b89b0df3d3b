/**
 * kube-proxy on a node of `up`. Its table name derives from the data directory, which keeps clusters apart and lets
 * `down` and `reset` find it.
 */
import type { Node } from '#apis/core/v1.ts'
import type { User } from '#auth/user.ts'
import { ApiClient, type ApiClientOptions } from '#client/api-client.ts'
import { bracketed } from '#component/bound-port.ts'
import { containerdPaths } from '#containerd/paths.ts'
import type { EnvironmentOptions } from '#control-plane/environment.ts'
import { durationMs } from '#lib/go/duration.ts'
import type { PagesOptions } from '#lib/http/pages.ts'
import { createRegistry, type Registry } from '#lib/metrics/metrics.ts'
import { readProcess, registerProcessMetrics } from '#lib/metrics/process.ts'
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

import { rangesOf } from '../address-ranges.ts'

export interface MachineProxyPlan extends Pick<EnvironmentOptions, 'clock' | 'random' | 'log'> {
  readonly dataDir: string
  readonly nodeName: string
  /** The node's addresses. */
  readonly addresses: readonly string[]
  /** As `PROXY_USER`, which has the needed permissions. */
  readonly connect: Pick<ApiClientOptions, 'transport' | 'server'>
  readonly families: readonly IpFamily[]
}

export const PROXY_USER: User = { name: 'system:kube-proxy', uid: '', groups: ['system:authenticated'], extra: {} }

const CONFIGURATION = withProxyDefaults({ mode: 'nftables' })
const SYNC_MS = durationMs(CONFIGURATION.nftables.syncPeriod)
const HEALTHZ_PORT = 10_256
const LOOPBACK = '127.0.0.1'

/** The prefix of all cluster bridges on a machine: see `placesOf`. */
const BRIDGES = 'hk-'
/** Bit 14, as upstream. */
const MASQUERADE_MARK = '0x00004000'

/** The families of a list of CIDRs. */
export function familiesOf(cidrs: string): readonly IpFamily[] {
  return rangesOf(cidrs).map((range) => (range.includes(':') ? 'IPv6' : 'IPv4'))
}

/** Removes rules at the end, like containers. Resolves when its ports are served. */
export async function startMachineProxy(plan: MachineProxyPlan, closing: AsyncDisposableStack): Promise<RunningProxy> {
  const { dataDir, nodeName, addresses, connect, clock, random, families } = plan
  const log = plan.log.withName('kube-proxy')
  const { network } = containerdPaths(dataDir)
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
  await applyConntrackSettings(CONFIGURATION.conntrack, log.v(1))
  const running = startProxy({ client, nodeName, backends, clock, random, log, meters, ...beside }, closing)
  const { syncStates: standing } = running.ruleSyncer
  const facts = (): HealthFacts => ({ standing, syncMs: SYNC_MS, nowMs: clock.now() })
  await servePorts({ addresses, registry, health: { meters, facts, node: () => node } }, { clock, log, closing })
  return running
}

interface ProxyPorts {
  readonly addresses: readonly string[]
  readonly registry: Registry
  readonly health: HealthPages
}

/** Upstream's ports. If another cluster on this machine uses one, logs that and continues. */
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
