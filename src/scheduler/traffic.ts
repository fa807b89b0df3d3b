/**
 * Bindings on their way to the API server. There are as many as keep it busy and no more: who waits in the queue instead can still
 * be overtaken by somebody more important, and is decided about by what is known then. What matters less than a binding waits
 * until there has been none for a moment: where pods come one after the other there is a next one.
 */
import type { Clock, Timer } from '#lib/clock.ts'

/** At twenty milliseconds each these are three thousand a second, which is more than any server takes. */
const MAX_BINDINGS = 64
/** The moment. */
const CALM_MS = 100

export class Traffic {
  readonly #clock: Clock
  #bindings = 0
  #room: PromiseWithResolvers<void> | undefined
  /** From the first binding until the moment after the last one. */
  #busy: PromiseWithResolvers<void> | undefined
  #timer: Timer | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Until there is room for one more binding; undefined when there is. */
  room(): Promise<void> | undefined {
    if (this.#bindings < MAX_BINDINGS) return undefined
    return (this.#room ??= Promise.withResolvers()).promise
  }

  /** Until there are no bindings; undefined when there are none. */
  calm(): Promise<void> | undefined {
    return this.#busy?.promise
  }

  async binding<T>(bind: () => Promise<T>): Promise<T> {
    this.#bindings++
    this.#busy ??= Promise.withResolvers()
    this.#timer?.cancel()
    try {
      return await bind()
    } finally {
      this.#bindings--
      this.#room?.resolve()
      this.#room = undefined
      if (this.#bindings === 0) this.#timer = this.#clock.after(CALM_MS, () => this.#rest())
    }
  }

  #rest(): void {
    this.#busy?.resolve()
    this.#busy = undefined
  }
}
