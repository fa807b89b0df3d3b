/** Runs asynchronous tasks one at a time, in order: for the whole server or for each cluster. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => undefined)
    return turn
  }
}

/** Runs the tasks for one cluster one after the other, so that nothing is written into a cluster while it is removed. */
export class ClusterTurns {
  readonly #turns = new Map<string, { readonly turns: Turns; count: number }>()

  async take<T>(cluster: string, work: () => Promise<T>): Promise<T> {
    const entry = this.#turns.get(cluster) ?? { turns: new Turns(), count: 0 }
    this.#turns.set(cluster, entry)
    entry.count++
    try {
      return await entry.turns.take(work)
    } finally {
      entry.count--
      if (entry.count === 0) this.#turns.delete(cluster)
    }
  }
}
