/**
 * Bindings on their way to the API server. There are as many as keep it busy and no more: who waits in the queue instead can still
 * be overtaken by somebody more important, and is decided about by what is known then. What matters less than a binding waits
 * until there is none.
 */

/** At twenty milliseconds each these are three thousand a second, which is more than any server takes. */
const MAX_BINDINGS = 64

export class Traffic {
  #bindings = 0
  #room: PromiseWithResolvers<void> | undefined
  #calm: PromiseWithResolvers<void> | undefined

  /** Until there is room for one more binding; undefined when there is. */
  room(): Promise<void> | undefined {
    if (this.#bindings < MAX_BINDINGS) return undefined
    return (this.#room ??= Promise.withResolvers()).promise
  }

  /** Until there is no binding; undefined when there is none. */
  calm(): Promise<void> | undefined {
    if (this.#bindings === 0) return undefined
    return (this.#calm ??= Promise.withResolvers()).promise
  }

  async binding<T>(bind: () => Promise<T>): Promise<T> {
    this.#bindings++
    try {
      return await bind()
    } finally {
      this.#bindings--
      this.#room?.resolve()
      this.#room = undefined
      if (this.#bindings === 0) {
        this.#calm?.resolve()
        this.#calm = undefined
      }
    }
  }
}
