/**
 * Room in memory for what is large, shared fairly: who asks for more than there is waits, and users are let in by turns,
 * so that nobody who fills their own share keeps the others out.
 */

export interface RoomLimits {
  /** How much of one user may be in memory; at least one thing, however large. */
  readonly userBytes: number
  /** How much of all users may be. */
  readonly totalBytes: number
}

interface Waiting {
  readonly bytes: number
  readonly go: () => void
}

export interface Room {
  /** Resolves to what gives the room back: all of it, or, before that, what is not needed after all. */
  enter(user: string, bytes: number): Promise<(keptBytes?: number) => void>
}

export function createRoom({ userBytes, totalBytes }: RoomLimits): Room {
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
  const letIn = (): void => {
    let next = queues.takeFirst(({ bytes }, user) => fits(user, bytes))
    for (; next !== undefined; next = queues.takeFirst(({ bytes }, user) => fits(user, bytes))) {
      add(next.user, next.item.bytes)
      next.item.go()
    }
  }
  return {
    async enter(user, bytes) {
      if (fits(user, bytes) && !queues.has(user)) add(user, bytes)
      else await new Promise<void>((go) => queues.add(user, { bytes, go }))
      let held = bytes
      return (kept = 0) => {
        add(user, kept - held)
        held = kept
        letIn()
      }
    },
  }
}

/** Queues by user, served in rotation. */
export class Queues<T> {
  /** In the order in which users are next; none is empty. */
  readonly #queues = new Map<string, T[]>()

  has(user: string): boolean {
    return this.#queues.has(user)
  }

  add(user: string, item: T): void {
    const queue = this.#queues.get(user)
    if (queue === undefined) this.#queues.set(user, [item])
    else queue.push(item)
  }

  /** The first item of the first user whose first item may go; that user is last from then on. */
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
