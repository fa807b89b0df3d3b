/**
 * When a pod is looked after: whatever happens wakes it, one turn at a time; what comes meanwhile is looked at in the next. A turn says
 * when there is something to do again, and one that fails is taken again soon.
 */
import { jitteredMs } from '#lib/backoff.ts'
import type { Timer } from '#lib/clock.ts'

import type { PodHost } from './pod-host.ts'
import { RETRY_MS } from './restart-wait.ts'

/** Between turns when nothing happens. */
const RESYNC_MS = 60_000

export interface PodTurnsOptions {
  readonly host: Pick<PodHost, 'clock' | 'random' | 'signal' | 'meters'>
  /** Returns when there is something to do again. */
  readonly turn: () => Promise<number>
  /** There is nothing to do any more. */
  readonly isOver: () => boolean
  /** What a turn was about was given up: that it failed is no fault. */
  readonly isGivenUp: () => boolean
  readonly failed: (error: unknown) => void
}

export class PodTurns {
  readonly #options: PodTurnsOptions
  readonly #seenMs: number
  /** What the next turn is for, as it is counted. */
  #next: 'create' | 'update' | 'sync' = 'create'
  #isBusy = false
  #isWoken = false
  #timer: Timer | undefined

  constructor(options: PodTurnsOptions) {
    this.#options = options
    this.#seenMs = options.host.clock.now()
  }

  /** The next turn is for what has changed, unless it is the first. */
  noteUpdate(): void {
    if (this.#next === 'sync') this.#next = 'update'
  }

  wake(): void {
    this.#isWoken = true
    if (!this.#isBusy && !this.#isDone) void this.#work()
  }

  /** There is more to do after this turn. */
  goOn(): void {
    this.#isWoken = true
  }

  stop(): void {
    this.#timer?.cancel()
  }

  get #isDone(): boolean {
    const { host, isOver } = this.#options
    return isOver() || host.signal.aborted
  }

  async #work(): Promise<void> {
    const { host, isGivenUp, failed } = this.#options
    this.#isBusy = true
    while (this.#isWoken && !this.#isDone) {
      this.#isWoken = false
      this.#timer?.cancel()
      let dueMs: number
      try {
        dueMs = await this.#counted()
      } catch (error) {
        if (host.signal.aborted) break
        dueMs = host.clock.now() + jitteredMs(host.random, RETRY_MS, 0.5)
        if (this.#isWoken && isGivenUp()) continue
        failed(error)
      }
      this.#schedule(dueMs)
    }
    this.#isBusy = false
  }

  #schedule(dueMs: number): void {
    if (this.#isDone) return
    const { clock, random } = this.#options.host
    const idleMs = jitteredMs(random, RESYNC_MS, 0.5)
    const delayMs = Math.min(Math.max(dueMs - clock.now(), 0), idleMs)
    this.#timer = clock.after(delayMs, () => this.wake(), { background: true })
  }

  async #counted(): Promise<number> {
    const { host, turn } = this.#options
    const { clock, meters } = host
    const durations = meters.family('kubelet_pod_worker_duration_seconds').labels(this.#next)
    if (this.#next === 'create') {
      const startDurations = meters.family('kubelet_pod_worker_start_duration_seconds').labels()
      startDurations.observe((clock.now() - this.#seenMs) / 1000)
    }
    this.#next = 'sync'
    const startMs = clock.elapsed()
    try {
      return await turn()
    } finally {
      durations.observe((clock.elapsed() - startMs) / 1000)
    }
  }
}
