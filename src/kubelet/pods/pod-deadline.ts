/** How long a pod may be active: it may pass while something is waited for. */
import type { Pod } from '#apis/core/v1.ts'
import type { Clock, Timer } from '#lib/clock.ts'

export interface PodDeadlineOptions {
  readonly clock: Clock
  readonly startedMs: number
  readonly passed: () => void
}

export class PodDeadline {
  readonly #options: PodDeadlineOptions
  #endMs = Infinity
  #timer: Timer | undefined

  constructor(options: PodDeadlineOptions) {
    this.#options = options
  }

  /** As the pod says it now. */
  heed({ spec: { activeDeadlineSeconds = Infinity } }: Pod): void {
    const { clock, startedMs, passed } = this.#options
    this.#timer?.cancel()
    this.#endMs = startedMs + activeDeadlineSeconds * 1000
    const leftMs = this.#endMs - clock.now()
    if (leftMs > 0 && Number.isFinite(leftMs)) this.#timer = clock.after(leftMs, passed, { background: true })
  }

  /** Infinity: there is none. */
  get endMs(): number {
    return this.#endMs
  }

  get hasPassed(): boolean {
    return this.#options.clock.now() >= this.#endMs
  }

  cancel(): void {
    this.#timer?.cancel()
  }
}
