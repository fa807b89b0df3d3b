/** Measures the time from the boot of the machine until the node is ready, for newly registered nodes only. */
import type { Clock } from '#lib/clock.ts'

import type { KubeletMeters } from './kubelet-families.ts'

export class NodeStartup {
  readonly #meters: KubeletMeters
  readonly #clock: Clock
  readonly #bootMs: number
  readonly #startedMs: number
  #registeringMs: number | undefined
  #registeredMs: number | undefined
  #isNew = false

  constructor(meters: KubeletMeters, clock: Clock, bootMs: number) {
    this.#meters = meters
    this.#clock = clock
    this.#bootMs = bootMs
    this.#startedMs = clock.now()
  }

  registering(): void {
    this.#registeringMs ??= this.#clock.now()
  }

  /** `isNew`: the Node did not exist before. */
  registered(isNew: boolean): void {
    this.#registeredMs ??= this.#clock.now()
    this.#isNew ||= isNew
  }

  ready(): void {
    const [registeringMs, registeredMs, nowMs] = [this.#registeringMs, this.#registeredMs, this.#clock.now()]
    if (!this.#isNew || registeringMs === undefined || registeredMs === undefined) return
    this.#isNew = false
    const parts = {
      kubelet_node_startup_pre_kubelet_duration_seconds: this.#startedMs - this.#bootMs,
      kubelet_node_startup_pre_registration_duration_seconds: registeringMs - this.#startedMs,
      kubelet_node_startup_registration_duration_seconds: registeredMs - registeringMs,
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
