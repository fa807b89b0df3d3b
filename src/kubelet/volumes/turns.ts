/** Work on the same thing comes one after the other; on different things it does not wait. */
export class Turns {
  readonly #last = new Map<string, Promise<void>>()

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const settled = mine.then(
      () => undefined,
      () => undefined,
    )
    this.#last.set(key, settled)
    return mine.finally(() => {
      if (this.#last.get(key) === settled) this.#last.delete(key)
    })
  }
}
