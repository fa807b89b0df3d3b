/**
 * kube-proxy: watches Services, EndpointSlices and its Node, computes routes and syncs kernel rules. Rules outlive the
 * process, so that a restart does not interrupt traffic, unless `removesRules` is set.
 */
import { type Node, Nodes, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { runPeriodically } from '#lib/periodic.ts'
import type { Random } from '#lib/random.ts'
import type { IpFamily } from '#model/services.ts'

import type { Backend } from './backend.ts'
import { type Conntrack, staleFlows } from './conntrack.ts'
import { HealthPorts } from './health-ports.ts'
import { isKeptUp } from './health.ts'
import type { ProxyMeters } from './proxy-metrics.ts'
import { BY_SERVICE, type RoutedService, Router, servicesOfSlice } from './router.ts'
import { createRuleSyncer, type RuleSyncer } from './rule-syncer.ts'
import { slimService, slimSlice } from './slim.ts'

export interface ProxyOptions {
  readonly client: ApiClient
  readonly nodeName: string
  /** One for each address family. */
  readonly backends: readonly Backend[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly meters: ProxyMeters
  /** The minimum time between two syncs. Default: upstream's. */
  readonly minSyncMs?: number
  /** The retry time after a failed sync. */
  readonly syncMs?: number
  /** The period of checks for foreign changes. Default: 5 seconds. */
  readonly repairMs?: number
  /** Whether to remove rules at the end. */
  readonly removesRules?: boolean
  /** Deletes flows to removed endpoints. Default: none. */
  readonly conntrack?: Conntrack
  /** Listen addresses of Service health checks. Default: none. */
  readonly healthHosts?: readonly string[]
  /** Called with its Node initially and after each change. */
  readonly onNode?: (node: Node) => void
}

export interface RunningProxy {
  /** Resolves when all initial Services have rules. */
  readonly ready: Promise<void>
  readonly ruleSyncer: RuleSyncer
}

/** Upstream's defaults for nftables and iptables. */
const MIN_SYNC_MS = 1000
const SYNC_MS = 30_000
const REPAIR_MS = 5000

/** Excludes Services of other proxies, and headless ones. */
const SELECTION = { labelSelector: '!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless' }
const ZONE = 'topology.kubernetes.io/zone'

/** Starts the proxy; rules follow once all caches are synced. Resources go to `closing`. */
export function startProxy(options: ProxyOptions, closing: AsyncDisposableStack): RunningProxy {
  const { client, nodeName, backends, clock, random, log } = options
  const stop = new AbortController()
  const families = backends.map(({ family }) => family)
  const onError = (error: unknown): void => log.error(error, 'Failed to watch Services, EndpointSlices or Nodes')
  const around = { client, random, onError }
  const services = new Informer<Service>({ ...around, kind: Services, selection: SELECTION, transform: slimService })
  const slices = new Informer<EndpointSlice>({
    ...around,
    kind: EndpointSlices,
    selection: SELECTION,
    transform: slimSlice,
    indexes: { [BY_SERVICE]: servicesOfSlice },
  })
  const cidrs = new Informer<ServiceCIDR>({ ...around, kind: ServiceCIDRs })
  const node = new Informer<Node>({ ...around, kind: Nodes, selection: { fieldSelector: `metadata.name=${nodeName}` } })
  const onChange = countingChanges(options.meters, () => ruleSyncer.request())
  const router = new Router({ services, slices, nodeName, families, onChange })
  const ruleSyncer = createRuleSyncer({
    router,
    backends,
    clock,
    log,
    meters: options.meters,
    minSyncMs: options.minSyncMs ?? MIN_SYNC_MS,
    syncMs: options.syncMs ?? SYNC_MS,
  })
  followNode(node, router, options)
  showPending(options.meters, router)
  deleteStaleFlows(ruleSyncer, options)
  openHealthPorts(ruleSyncer, options, closing)
  followServiceCidrs(cidrs, backends, () => ruleSyncer.requestFull())
  const running = [services, slices, cidrs, node].map((informer) => informer.run(stop.signal))
  const repair = startRepairs(ruleSyncer, options)
  closing.defer(async () => {
    stop.abort()
    await repair.stop()
    await ruleSyncer.stop()
    await Promise.all(running)
    if (options.removesRules === true) for (const backend of backends) await backend.remove()
  })
  const ready = Promise.all([services.synced, slices.synced]).then(() => ruleSyncer.begin())
  return { ready, ruleSyncer }
}

function startRepairs(
  ruleSyncer: RuleSyncer,
  { clock, log, repairMs = REPAIR_MS }: ProxyOptions,
): ReturnType<typeof runPeriodically> {
  const onError = (error: unknown): void => log.error(error, 'Failed to check kube-proxy rules')
  return runPeriodically({ clock, periodMs: repairMs, onError }, () => ruleSyncer.repair())
}

function countingChanges(meters: ProxyMeters, then: () => void): (what: 'service' | 'endpoint' | 'all') => void {
  const service = meters.family('kubeproxy_sync_proxy_rules_service_changes_total').labels()
  const endpoint = meters.family('kubeproxy_sync_proxy_rules_endpoint_changes_total').labels()
  return (what) => {
    if (what === 'service') service.inc()
    if (what === 'endpoint') endpoint.inc()
    then()
  }
}

function showPending(meters: ProxyMeters, router: Router): void {
  meters.collect('kubeproxy_sync_proxy_rules_service_changes_pending', (emit) => emit(router.pending.service))
  meters.collect('kubeproxy_sync_proxy_rules_endpoint_changes_pending', (emit) => emit(router.pending.endpoint))
}

function deleteStaleFlows(ruleSyncer: RuleSyncer, { conntrack, backends, clock, log, meters }: ProxyOptions): void {
  if (conntrack === undefined) return
  const tidy = async (routed: readonly RoutedService[], family: IpFamily): Promise<void> => {
    const beganMs = clock.elapsed()
    const stale = staleFlows(await conntrack.list(family), routed, family)
    for (const flow of stale) await conntrack.forget(family, flow)
    meters.family('kubeproxy_conntrack_reconciler_deleted_entries_total').labels(family).inc(stale.length)
    const seconds = (clock.elapsed() - beganMs) / 1000
    meters.family('kubeproxy_conntrack_reconciler_sync_duration_seconds').labels(family).observe(seconds)
  }
  let isMissing = false
  const failed = (error: NodeJS.ErrnoException): void => {
    isMissing = error.code === 'ENOENT'
    if (isMissing) log.info('conntrack is not installed; UDP flows continue to removed endpoints')
    else log.error(error, 'Failed to list conntrack entries')
  }
  ruleSyncer.listen(async (routed) => {
    for (const { family } of backends) {
      const udp = routed.filter(({ routes }) => routes.get(family)?.some(({ port }) => port.protocol === 'udp'))
      if (udp.length > 0 && !isMissing) await tidy(udp, family).catch(failed)
    }
  })
}

function openHealthPorts(ruleSyncer: RuleSyncer, options: ProxyOptions, closing: AsyncDisposableStack): void {
  const { healthHosts = [], clock, log, syncMs = SYNC_MS } = options
  if (healthHosts.length === 0) return
  const isHealthy = (): boolean => isKeptUp({ standing: ruleSyncer.syncStates, syncMs, nowMs: clock.now() })
  const ports = new HealthPorts({ clock, log, hosts: () => healthHosts, isHealthy })
  closing.defer(() => ports.stop())
  ruleSyncer.listen((routed) => ports.update(routed))
}

function followNode(node: Informer<Node>, router: Router, { onNode }: ProxyOptions): void {
  const look = (object: Node): void => {
    router.setZone(object.metadata.labels?.[ZONE] ?? '')
    onNode?.(object)
  }
  node.listen({ added: look, updated: look })
}

function followServiceCidrs(cidrs: Informer<ServiceCIDR>, backends: readonly Backend[], onChange: () => void): void {
  const known = new Map<IpFamily, string>()
  const look = (): void => {
    const blocks = Array.from(cidrs.list()).flatMap(({ spec }) => spec?.cidrs ?? [])
    for (const backend of backends) {
      const own = blocks.filter((block) => block.includes(':') === (backend.family === 'IPv6')).sort()
      if (known.get(backend.family) === own.join()) continue
      known.set(backend.family, own.join())
      backend.setServiceCidrs(own)
      onChange()
    }
  }
  cidrs.listen({ added: look, updated: look, deleted: look })
}
