/**
 * Node-pressure eviction: checks every ten seconds, reclaims unused disk space and evicts one pod at a time.
 * `pressure.ts` and `ranking.ts` have the rules.
 */
import type { Pod } from '#apis/core/v1.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import type { NodeUse, PodUse } from '../machine/node-use.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import { isCritical } from '../pod/admission-rules.ts'
import type { EventSpec } from '../pod/events.ts'
import { Pressure } from './pressure.ts'
import { evictionText, excessOf, rankPods } from './ranking.ts'
import { type Observations, observationsOf, type Signal, SIGNALS, type Threshold } from './thresholds.ts'

export interface Eviction {
  readonly message: string
  readonly graceSeconds: number
  /** True if the node caused the eviction; the pod then gets the DisruptionTarget condition. */
  readonly isDisruption: boolean
  /** Annotations of the event. */
  readonly annotations?: Readonly<Record<string, string>>
}

export interface EvictionOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  readonly thresholds: readonly Threshold[]
  /** Default: five minutes. */
  readonly transitionMs?: number
  /** Maximum grace period for soft thresholds. Default: 0. */
  readonly maxGraceSeconds?: number
  readonly measure: () => Promise<NodeUse>
  /** Resolves when the pod's containers have ended. */
  readonly evict: (pod: Pod, eviction: Eviction) => Promise<void>
  /** Called after each check with the node conditions, such as `MemoryPressure`. */
  readonly onPressures: (pressures: readonly string[]) => void
  readonly removeDeadContainers: () => Promise<void>
  readonly removeUnusedImages: () => Promise<unknown>
  /** Records an event about the node. */
  readonly recordEvent: (event: EventSpec) => void
  readonly meters: KubeletMeters
}

/** A met threshold, with the observations that met it. */
interface MetThreshold {
  readonly threshold: Threshold
  readonly seen: Observations
  readonly seenMs: number
}

const PERIOD_MS = 10_000
const SETTLING_MS = 1000
const TRANSITION_MS = 300_000
const IMMEDIATE_SECONDS = 1

export class EvictionManager {
  readonly #options: EvictionOptions
  readonly #pressure: Pressure

  constructor(options: EvictionOptions) {
    this.#options = options
    this.#pressure = new Pressure(options.thresholds, options.transitionMs ?? TRANSITION_MS)
  }

  async run(): Promise<void> {
    const { clock, log, signal } = this.#options
    while (!signal.aborted) {
      const hasEvicted = await this.synchronize().catch((error: unknown) => {
        if (!signal.aborted) log.error(error, 'Eviction manager: failed to synchronize')
        return false
      })
      // After an eviction the next check comes soon.
      const delayMs = hasEvicted ? SETTLING_MS : PERIOD_MS
      await sleep(clock, delayMs, signal, { background: true }).catch(() => undefined)
    }
  }

  /** Returns true if a pod was evicted. */
  async synchronize(): Promise<boolean> {
    const use = await this.#options.measure()
    const seenMs = this.#options.clock.elapsed()
    const seen = observationsOf(use)
    const thresholds = this.#pressure.observe(seen, this.#options.clock.now())
    this.#options.onPressures(this.#pressure.conditions)
    if (await this.#evictGreedy(use)) return true
    const [threshold] = thresholds
    if (threshold === undefined) return false
    const { resource } = SIGNALS[threshold.signal]
    const message = `Attempting to reclaim ${resource}`
    this.#options.recordEvent({ type: 'Warning', reason: 'EvictionThresholdMet', message })
    if (await this.#reclaim(threshold.signal, use.hasImageDisk)) return false
    return this.#evictOne(use, { threshold, seen, seenMs })
  }

  /** Evicts pods that exceed their local storage limits, regardless of the node's free space. */
  async #evictGreedy({ pods, hasImageDisk }: NodeUse): Promise<boolean> {
    let hasEvicted = false
    for (const use of pods) {
      const excess = excessOf(use, hasImageDisk)
      if (excess === undefined || isCritical(use.pod)) continue
      const { message, signal } = excess
      this.#options.meters.family('kubelet_evictions').labels(signal).inc()
      await this.#options.evict(use.pod, { message, graceSeconds: IMMEDIATE_SECONDS, isDisruption: false })
      hasEvicted = true
    }
    return hasEvicted
  }

  /** Returns true if no pod has to be evicted. */
  async #reclaim(signal: Signal, hasImageDisk: boolean): Promise<boolean> {
    const isDisk = signal.startsWith('imagefs') || (signal.startsWith('nodefs') && !hasImageDisk)
    if (!isDisk) return false
    const { log, removeDeadContainers, removeUnusedImages, measure } = this.#options
    for (const remove of [removeDeadContainers, removeUnusedImages]) {
      await remove().catch((error: unknown) =>
        log.error(error, 'Eviction manager: unexpected error when attempting to reduce resource pressure'),
      )
    }
    return this.#pressure.isRelieved(observationsOf(await measure()))
  }

  async #evictOne({ pods, hasImageDisk }: NodeUse, { threshold, seen, seenMs }: MetThreshold): Promise<boolean> {
    const ranked = rankPods(pods, threshold.signal, hasImageDisk)
    const use = ranked.find(({ pod }) => !isCritical(pod))
    if (use === undefined) {
      this.#options.log.info('Eviction manager: unable to evict any pods from the node')
      return false
    }
    const graceSeconds = this.#graceOf(use, threshold)
    const { meters, clock } = this.#options
    const { signal } = threshold
    meters.family('kubelet_evictions').labels(signal).inc()
    meters
      .family('kubelet_eviction_stats_age_seconds')
      .labels(signal)
      .observe((clock.elapsed() - seenMs) / 1000)
    await this.#options.evict(use.pod, { ...evictionText(use, threshold, seen), graceSeconds, isDisruption: true })
    return true
  }

  #graceOf({ pod }: PodUse, { isHard }: Threshold): number {
    if (isHard) return IMMEDIATE_SECONDS
    const { maxGraceSeconds = 0 } = this.#options
    return Math.min(maxGraceSeconds, pod.spec.terminationGracePeriodSeconds ?? maxGraceSeconds)
  }
}
