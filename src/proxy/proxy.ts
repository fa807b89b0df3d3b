/**
 * kube-proxy: follows Services, EndpointSlices and its own Node, works out routes and keeps the kernel's rules in step with them.
 * Rules outlive it, so that nobody notices when it is started anew; who wants them gone says so.
 */
import { type Node, Nodes, type Service, Services } from '#apis/core/v1.ts'
import { type EndpointSlice, EndpointSlices } from '#apis/discovery/v1.ts'
import { type ServiceCIDR, ServiceCIDRs } from '#apis/networking/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { Informer } from '#client/informer.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { Random } from '#lib/random.ts'
import { startRounds } from '#lib/rounds.ts'
import type { IpFamily } from '#model/services.ts'

import type { Backend } from './backend.ts'
import { type Conntrack, staleFlows } from './conntrack.ts'
import { HealthPorts } from './health-ports.ts'
import { isKeptUp } from './health.ts'
import { createKeeper, type Keeper } from './keeper.ts'
import type { ProxyMeters } from './proxy-metrics.ts'
import { BY_SERVICE, type Routed, Router, servicesOfSlice } from './router.ts'
import { slimService, slimSlice } from './slim.ts'

export interface ProxyOptions {
  readonly client: ApiClient
  readonly nodeName: string
  /** One for each family that the node has; rules of each are its own. */
  readonly backends: readonly Backend[]
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly meters: ProxyMeters
  /** At least this long between two rounds; default: upstream's. */
  readonly minSyncMs?: number
  /** After this long a round that failed is tried again. */
  readonly syncMs?: number
  /** How often it looks whether somebody has taken its rules away; default: every 5 seconds. */
  readonly repairMs?: number
  /** Whether rules go when it ends. */
  readonly removesRules?: boolean
  /** Forgets flows to endpoints that have gone; default: nobody does. */
  readonly conntrack?: Conntrack
  /** Where ports for health checks of Services listen; default: nowhere. */
  readonly healthHosts?: readonly string[]
  /** Told of its node, at first and whenever it changes. */
  readonly onNode?: (node: Node) => void
}

export interface RunningProxy {
  /** All that was there when it began has its rules. */
  readonly ready: Promise<void>
  readonly keeper: Keeper
}

/** As upstream's defaults for nftables and iptables. */
const MIN_SYNC_MS = 1000
const SYNC_MS = 30_000
const REPAIR_MS = 5000

/** Others may serve these, and of headless ones there is nothing to serve. */
const SELECTION = { labelSelector: '!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless' }
const ZONE = 'topology.kubernetes.io/zone'

/** Begins; rules come about when everything has been read. What it opens is put on `closing`. */
export function startProxy(options: ProxyOptions, closing: AsyncDisposableStack): RunningProxy {
  const { client, nodeName, backends, clock, random, log } = options
  const stop = new AbortController()
  const families = backends.map(({ family }) => family)
  const onError = (error: unknown): void => log.error(error, 'The API server could not be watched')
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
  const onChange = countingChanges(options.meters, () => keeper.request())
  const router = new Router({ services, slices, nodeName, families, onChange })
  const keeper = createKeeper({
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
  tidyFlows(keeper, options)
  openHealthPorts(keeper, options, closing)
  followServiceCidrs(cidrs, backends, () => keeper.requestFull())
  const running = [services, slices, cidrs, node].map((informer) => informer.run(stop.signal))
  const repair = startRepairs(keeper, options)
  closing.defer(async () => {
    stop.abort()
    await repair.stop()
    await keeper.stop()
    await Promise.all(running)
    if (options.removesRules === true) for (const backend of backends) await backend.remove()
  })
  const ready = Promise.all([services.synced, slices.synced]).then(() => keeper.begin())
  return { ready, keeper }
}

function startRepairs(
  keeper: Keeper,
  { clock, log, repairMs = REPAIR_MS }: ProxyOptions,
): ReturnType<typeof startRounds> {
  const onError = (error: unknown): void => log.error(error, 'Rules could not be looked at')
  return startRounds({ clock, periodMs: repairMs, onError }, () => keeper.repair())
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

function tidyFlows(keeper: Keeper, { conntrack, backends, clock, log, meters }: ProxyOptions): void {
  if (conntrack === undefined) return
  const tidy = async (routed: readonly Routed[], family: IpFamily): Promise<void> => {
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
    if (isMissing) log.info('There is no conntrack on this machine: flows of UDP stay with endpoints that have gone')
    else log.error(error, 'Failed to list conntrack entries')
  }
  keeper.listen(async (routed) => {
    for (const { family } of backends) {
      const udp = routed.filter(({ routes }) => routes.get(family)?.some(({ port }) => port.protocol === 'udp'))
      if (udp.length > 0 && !isMissing) await tidy(udp, family).catch(failed)
    }
  })
}

function openHealthPorts(keeper: Keeper, options: ProxyOptions, closing: AsyncDisposableStack): void {
  const { healthHosts = [], clock, log, syncMs = SYNC_MS } = options
  if (healthHosts.length === 0) return
  const isHealthy = (): boolean => isKeptUp({ standing: keeper.standing, syncMs, nowMs: clock.now() })
  const ports = new HealthPorts({ clock, log, hosts: () => healthHosts, isHealthy })
  closing.defer(() => ports.stop())
  keeper.listen((routed) => ports.update(routed))
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
