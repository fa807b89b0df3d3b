/**
 * Syncs kernel rules: changes at once, and all rules periodically, after a failure, or after another program has
 * changed them.
 */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import type { IpFamily } from '#model/services.ts'

import type { Backend, SyncOutcome } from './backend.ts'
import { LocalGaps } from './local-gaps.ts'
import type { ProxyMeters } from './proxy-metrics.ts'
import type { RoutedService, Router } from './router.ts'
import { startSyncLoop } from './sync-loop.ts'

export interface RuleSyncerOptions {
  readonly router: Router
  readonly backends: readonly Backend[]
  readonly clock: Clock
  readonly log: Logger
  readonly meters: ProxyMeters
  readonly minSyncMs: number
  readonly syncMs: number
}

/** The sync state of a family, for health checks. */
export interface SyncState {
  /** The time of the last sync, and of the oldest pending change; undefined: none. */
  updatedMs: number
  queuedMs: number | undefined
}

export interface RuleSyncer {
  /** Requests a sync of changes. */
  request(): void
  /** Requests a full sync. */
  requestFull(): void
  /** Starts syncing; resolves after the first sync. */
  begin(): Promise<void>
  /** Checks the rules and restores them. */
  repair(): Promise<void>
  /** Calls the listener with the synced Services after each sync. */
  listen(listener: (routed: readonly RoutedService[]) => Promise<void>): void
  readonly syncStates: ReadonlyMap<IpFamily, Readonly<SyncState>>
  stop(): Promise<void>
}

/** As upstream: repairs unnoticed changes. */
const FULL_MS = 3_600_000

export function createRuleSyncer(options: RuleSyncerOptions): RuleSyncer {
  return new Syncer(options)
}

class Syncer implements RuleSyncer {
  readonly #options: RuleSyncerOptions
  readonly #loop: ReturnType<typeof startSyncLoop>
  readonly #first = Promise.withResolvers<void>()
  readonly #standing = new Map<IpFamily, SyncState>()
  readonly #listeners: ((routed: readonly RoutedService[]) => Promise<void>)[] = []
  /** Families that need a full sync. */
  readonly #due = new Set<IpFamily>()
  readonly #fullMs = new Map<IpFamily, number>()
  readonly #gaps = new LocalGaps()
  readonly #startedMs: number
  #hasBegun = false

  constructor(options: RuleSyncerOptions) {
    this.#options = options
    const { clock, backends, minSyncMs, syncMs } = options
    this.#startedMs = clock.now()
    for (const { family } of backends) {
      this.#due.add(family)
      this.#standing.set(family, { updatedMs: clock.now(), queuedMs: undefined })
    }
    this.#loop = startSyncLoop({ clock, minMs: minSyncMs, retryMs: syncMs, maxMs: FULL_MS }, () => this.#round())
  }

  get syncStates(): ReadonlyMap<IpFamily, Readonly<SyncState>> {
    return this.#standing
  }

  listen(listener: (routed: readonly RoutedService[]) => Promise<void>): void {
    this.#listeners.push(listener)
  }

  request(): void {
    if (!this.#hasBegun) return
    const nowMs = this.#options.clock.now()
    for (const standing of this.#standing.values()) standing.queuedMs ??= nowMs
    this.#loop.request()
  }

  requestFull(): void {
    for (const { family } of this.#options.backends) this.#due.add(family)
    this.request()
  }

  begin(): Promise<void> {
    this.#hasBegun = true
    this.request()
    return this.#first.promise
  }

  async repair(): Promise<void> {
    if (!this.#hasBegun) return
    for (const backend of this.#options.backends) {
      if (this.#due.has(backend.family) || (await backend.isIntact())) continue
      this.#options.log.info('Another program changed the kube-proxy rules; restoring them', {
        ipFamily: backend.family,
      })
      this.#due.add(backend.family)
      this.request()
    }
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
  }

  /** Returns whether everything succeeded. */
  async #round(): Promise<boolean> {
    const { router, backends } = this.#options
    if (!this.#hasBegun) return true
    const routed = router.take()
    for (const one of routed)
      for (const backend of backends) {
        backend.set(one.service, one.routes.get(backend.family))
        this.#gaps.note(one, backend.family)
      }
    let hasFailed = false
    for (const backend of backends) if (!(await this.#sync(backend, routed))) hasFailed = true
    for (const listener of this.#listeners) await listener(routed)
    if (!hasFailed) this.#first.resolve()
    return !hasFailed
  }

  async #sync(backend: Backend, routed: readonly RoutedService[]): Promise<boolean> {
    const { clock, log, meters } = this.#options
    const { family } = backend
    const standing = this.#standing.get(family) as SyncState
    const beganMs = clock.elapsed()
    meters
      .family('kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds')
      .labels(family)
      .set(clock.now() / 1000)
    const isFull = this.#due.has(family) || beganMs - (this.#fullMs.get(family) ?? beganMs) >= FULL_MS
    // Later requests belong to the next sync.
    this.#due.delete(family)
    const queuedMs = standing.queuedMs
    standing.queuedMs = undefined
    let outcome: SyncOutcome
    try {
      outcome = await backend.sync(isFull)
    } catch (error) {
      this.#due.add(family)
      standing.queuedMs = queuedMs ?? clock.now()
      for (const name of backend.failureFamilies(isFull)) meters.family(name).labels(family).inc()
      log.error(error, 'Failed to sync rules', { ipFamily: family })
      return false
    }
    if (isFull) this.#fullMs.set(family, clock.elapsed())
    standing.updatedMs = clock.now()
    this.#measure(family, { outcome, seconds: (clock.elapsed() - beganMs) / 1000, routed })
    return true
  }

  #measure(
    family: IpFamily,
    {
      outcome,
      seconds,
      routed,
    }: { readonly outcome: SyncOutcome; readonly seconds: number; readonly routed: readonly RoutedService[] },
  ): void {
    const { clock, meters } = this.#options
    const kind = outcome.isFull ? 'full' : 'partial'
    meters.family('kubeproxy_sync_proxy_rules_duration_seconds').labels(family).observe(seconds)
    meters.family(`kubeproxy_sync_${kind}_proxy_rules_duration_seconds`).labels(family).observe(seconds)
    meters
      .family('kubeproxy_sync_proxy_rules_last_timestamp_seconds')
      .labels(family)
      .set(clock.now() / 1000)
    const programming = meters.family('kubeproxy_network_programming_duration_seconds').labels(family)
    for (const { causedMs } of routed)
      // Changes from before our start do not count.
      for (const ms of causedMs) if (ms > this.#startedMs) programming.observe((clock.now() - ms) / 1000)
    const { internal, external } = this.#gaps.count(family)
    const gaps = meters.family('kubeproxy_sync_proxy_rules_no_local_endpoints_total')
    gaps.labels('internal', family).set(internal)
    gaps.labels('external', family).set(external)
    for (const [table, { written, total }] of Object.entries(outcome.iptables ?? {})) {
      meters.family('kubeproxy_sync_proxy_rules_iptables_last').labels(table, family).set(written)
      meters.family('kubeproxy_sync_proxy_rules_iptables_total').labels(table, family).set(total)
    }
  }
}
