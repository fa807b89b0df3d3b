/**
 * The sync loop of one pod. An event triggers a sync; an event during a sync triggers another one afterwards. Syncs run
 * one at a time; a failed sync is retried.
 */
import { jitteredMs } from '#lib/backoff.ts'
import type { Timer } from '#lib/clock.ts'

import { RETRY_MS } from '../pod/back-off.ts'
import { podText } from '../pod/events.ts'
import type { PodContext } from './pod-context.ts'

/** Interval of syncs without events. */
const RESYNC_MS = 60_000

/** When the next sync is due. `isAgain`: at once. */
export interface SyncResult {
  readonly untilMs: number
  readonly isAgain?: boolean
}

export class PodSyncLoop {
  readonly #context: Pick<PodContext, 'host' | 'state' | 'signal'>
  readonly #sync: () => Promise<SyncResult>
  /** The type of the next sync, as a metric label. */
  #next: 'create' | 'update' | 'sync' = 'create'
  #isBusy = false
  #isWoken = false
  #timer: Timer | undefined

  constructor(context: Pick<PodContext, 'host' | 'state' | 'signal'>, sync: () => Promise<SyncResult>) {
    this.#context = context
    this.#sync = sync
  }

  /** Counts the next sync as an update, unless it is the first. */
  markUpdate(): void {
    if (this.#next === 'sync') this.#next = 'update'
  }

  wake(): void {
    this.#isWoken = true
    if (!this.#isBusy && !this.#isDone) void this.#work()
  }

  stop(): void {
    this.#timer?.cancel()
  }

  get #isDone(): boolean {
    const { host, state } = this.#context
    return state.isOver || host.signal.aborted
  }

  async #work(): Promise<void> {
    const { host, state, signal } = this.#context
    this.#isBusy = true
    while (this.#isWoken && !this.#isDone) {
      this.#isWoken = false
      this.#timer?.cancel()
      let dueMs: number
      try {
        const { untilMs, isAgain = false } = await this.#counted()
        dueMs = untilMs
        this.#isWoken ||= isAgain
      } catch (error) {
        if (host.signal.aborted) break
        dueMs = host.clock.now() + jitteredMs(host.random, RETRY_MS, 0.5)
        if (this.#isWoken && signal.aborted) continue
        host.log.error(error, 'Error syncing pod, skipping', { pod: podText(state.pod) })
      }
      this.#schedule(dueMs)
    }
    this.#isBusy = false
  }

  #schedule(dueMs: number): void {
    if (this.#isDone) return
    const { clock, random } = this.#context.host
    const idleMs = jitteredMs(random, RESYNC_MS, 0.5)
    const delayMs = Math.min(Math.max(dueMs - clock.now(), 0), idleMs)
    this.#timer = clock.after(delayMs, () => this.wake(), { background: true })
  }

  async #counted(): Promise<SyncResult> {
    const { host, state } = this.#context
    const { clock, meters } = host
    const durations = meters.family('kubelet_pod_worker_duration_seconds').labels(this.#next)
    if (this.#next === 'create') {
      const startDurations = meters.family('kubelet_pod_worker_start_duration_seconds').labels()
      startDurations.observe((clock.now() - state.seenMs) / 1000)
    }
    this.#next = 'sync'
    const startMs = clock.elapsed()
    try {
      return await this.#sync()
    } finally {
      durations.observe((clock.elapsed() - startMs) / 1000)
    }
  }
}
