/**
 * A memory budget for large responses and bodies. A reservation beyond the budget waits. Waiting users take turns, so
 * that a user with many reservations does not block others.
 */

export interface MemoryLimits {
  /** The limit per user; a single reservation may exceed it. */
  readonly userBytes: number
  /** The limit for all users. */
  readonly totalBytes: number
}

interface Waiting {
  readonly bytes: number
  readonly go: () => void
}

export interface MemoryBudget {
  /** Resolves to the release function: it releases everything, or shrinks the reservation to `keptBytes`. */
  reserve(user: string, bytes: number): Promise<(keptBytes?: number) => void>
}

export function createMemoryBudget({ userBytes, totalBytes }: MemoryLimits): MemoryBudget {
  const queues = new Queues<Waiting>()
  const used = new Map<string, number>()
  let total = 0
  const fits = (user: string, bytes: number): boolean => {
    const own = used.get(user) ?? 0
    return (own === 0 || own + bytes <= userBytes) && (total === 0 || total + bytes <= totalBytes)
  }
  const add = (user: string, bytes: number): void => {
    total += bytes
    const own = (used.get(user) ?? 0) + bytes
    if (own === 0) used.delete(user)
    else used.set(user, own)
  }
  const admitWaiting = (): void => {
    let next = queues.takeFirst(({ bytes }, user) => fits(user, bytes))
    for (; next !== undefined; next = queues.takeFirst(({ bytes }, user) => fits(user, bytes))) {
      add(next.user, next.item.bytes)
      next.item.go()
    }
  }
  return {
    async reserve(user, bytes) {
      if (fits(user, bytes) && !queues.has(user)) add(user, bytes)
      else await new Promise<void>((go) => queues.add(user, { bytes, go }))
      let reserved = bytes
      return (kept = 0) => {
        add(user, kept - reserved)
        reserved = kept
        admitWaiting()
      }
    },
  }
}

/** Queues by user, served in rotation. */
export class Queues<T> {
  /** In the order of service; none is empty. */
  readonly #queues = new Map<string, T[]>()

  has(user: string): boolean {
    return this.#queues.has(user)
  }

  add(user: string, item: T): void {
    const queue = this.#queues.get(user)
    if (queue === undefined) this.#queues.set(user, [item])
    else queue.push(item)
  }

  /** The first item of the first user for whom `mayGo` is true; that user then moves to the end. */
  takeFirst(mayGo: (item: T, user: string) => boolean): { readonly user: string; readonly item: T } | undefined {
    for (const [user, queue] of this.#queues) {
      const item = queue[0] as T
      if (!mayGo(item, user)) continue
      queue.shift()
      this.#queues.delete(user)
      if (queue.length > 0) this.#queues.set(user, queue)
      return { user, item }
    }
    return undefined
  }
}
