/**
 * A mutex for each key: calls with the same key run one after the other, and calls with different keys run
 * concurrently.
 */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
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
