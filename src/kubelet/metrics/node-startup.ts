/** How long a node took from the start of its machine until it was ready. Told of nodes that were registered anew. */
import type { Clock } from '#lib/clock.ts'

import type { KubeletMeters } from './kubelet-families.ts'

export class NodeStartup {
  readonly #meters: KubeletMeters
  readonly #clock: Clock
  readonly #bootMs: number
  readonly #startedMs: number
  #askedMs: number | undefined
  #registeredMs: number | undefined
  #isNew = false

  constructor(meters: KubeletMeters, clock: Clock, bootMs: number) {
    this.#meters = meters
    this.#clock = clock
    this.#bootMs = bootMs
    this.#startedMs = clock.now()
  }

  registering(): void {
    this.#askedMs ??= this.#clock.now()
  }

  /** `isNew`: it was not there before. */
  registered(isNew: boolean): void {
    this.#registeredMs ??= this.#clock.now()
    this.#isNew ||= isNew
  }

  ready(): void {
    const [askedMs, registeredMs, nowMs] = [this.#askedMs, this.#registeredMs, this.#clock.now()]
    if (!this.#isNew || askedMs === undefined || registeredMs === undefined) return
    this.#isNew = false
    const parts = {
      kubelet_node_startup_pre_kubelet_duration_seconds: this.#startedMs - this.#bootMs,
      kubelet_node_startup_pre_registration_duration_seconds: askedMs - this.#startedMs,
      kubelet_node_startup_registration_duration_seconds: registeredMs - askedMs,
      kubelet_node_startup_post_registration_duration_seconds: nowMs - registeredMs,
      kubelet_node_startup_duration_seconds: nowMs - this.#bootMs,
    } as const
    for (const name of Object.keys(parts) as (keyof typeof parts)[]) {
      this.#meters
        .family(name)
        .labels()
        .set(parts[name] / 1000)
    }
  }
}
