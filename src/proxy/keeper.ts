/** Brings rules about: what has changed, everything when something went wrong or somebody took rules away, and all once in a while. */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import type { IpFamily } from '#model/services.ts'

import type { Backend, SyncOutcome } from './backend.ts'
import { LocalGaps } from './local-gaps.ts'
import type { ProxyMeters } from './proxy-metrics.ts'
import type { Routed, Router } from './router.ts'
import { startSyncLoop } from './sync-loop.ts'

export interface KeeperOptions {
  readonly router: Router
  readonly backends: readonly Backend[]
  readonly clock: Clock
  readonly log: Logger
  readonly meters: ProxyMeters
  readonly minSyncMs: number
  readonly syncMs: number
}

/** What a family's rules are like, for those who ask whether all is well. */
export interface Standing {
  /** When rules were brought about last, and when the oldest change came that is not in them yet; undefined: there is none. */
  updatedMs: number
  queuedMs: number | undefined
}

export interface Keeper {
  /** Something has changed. */
  request(): void
  /** Something has changed that touches everything. */
  requestFull(): void
  /** From now on there is something to keep; resolves with the first rules. */
  begin(): Promise<void>
  /** Looks whether rules are still there, and brings them back. */
  repair(): Promise<void>
  /** Told of what was brought about, after each round. */
  listen(listener: (routed: readonly Routed[]) => Promise<void>): void
  readonly standing: ReadonlyMap<IpFamily, Readonly<Standing>>
  stop(): Promise<void>
}

/** As upstream: whatever may have happened to rules that nobody noticed. */
const FULL_MS = 3_600_000

export function createKeeper(options: KeeperOptions): Keeper {
  return new RuleKeeper(options)
}

class RuleKeeper implements Keeper {
  readonly #options: KeeperOptions
  readonly #loop: ReturnType<typeof startSyncLoop>
  readonly #first = Promise.withResolvers<void>()
  readonly #standing = new Map<IpFamily, Standing>()
  readonly #listeners: ((routed: readonly Routed[]) => Promise<void>)[] = []
  /** Families all of whose rules are due. */
  readonly #due = new Set<IpFamily>()
  readonly #fullMs = new Map<IpFamily, number>()
  readonly #gaps = new LocalGaps()
  readonly #startedMs: number
  #hasBegun = false

  constructor(options: KeeperOptions) {
    this.#options = options
    const { clock, backends, minSyncMs, syncMs } = options
    this.#startedMs = clock.now()
    for (const { family } of backends) {
      this.#due.add(family)
      this.#standing.set(family, { updatedMs: clock.now(), queuedMs: undefined })
    }
    this.#loop = startSyncLoop({ clock, minMs: minSyncMs, retryMs: syncMs, maxMs: FULL_MS }, () => this.#round())
  }

  get standing(): ReadonlyMap<IpFamily, Readonly<Standing>> {
    return this.#standing
  }

  listen(listener: (routed: readonly Routed[]) => Promise<void>): void {
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
      this.#options.log.info('Rules have been taken away; bringing them back', { ipFamily: backend.family })
      this.#due.add(backend.family)
      this.request()
    }
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
  }

  /** Whether all of it came about. */
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

  async #sync(backend: Backend, routed: readonly Routed[]): Promise<boolean> {
    const { clock, log, meters } = this.#options
    const { family } = backend
    const standing = this.#standing.get(family) as Standing
    const beganMs = clock.elapsed()
    meters
      .family('kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds')
      .labels(family)
      .set(clock.now() / 1000)
    const isFull = this.#due.has(family) || beganMs - (this.#fullMs.get(family) ?? beganMs) >= FULL_MS
    // What is asked for from here on is for the next round.
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
      log.error(error, 'Rules could not be brought about', { ipFamily: family })
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
    }: { readonly outcome: SyncOutcome; readonly seconds: number; readonly routed: readonly Routed[] },
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
      // What came about before we did says nothing of us.
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
