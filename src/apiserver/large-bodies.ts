/**
 * Large bodies, one at a time. A body of some hundred KiB holds the event loop for as long as it takes to decode, check
 * and encode; whoever sends many must not keep everybody else waiting. So they take turns, user by user, with a rest
 * after each in which the others are served, and the memory of those that wait is bounded too.
 */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'

export interface LargeBodies {
  /** The body, when there is room for it and its turn has come. Rejects as `Exchange.readBody` does. */
  read(exchange: Exchange, user: string): Promise<Buffer>
}

export interface LargeBodyLimits {
  /** The largest body that is read at all: upstream's limit. */
  readonly maxBytes: number
  /** Up to here a body waits for nobody: it takes a few milliseconds. */
  readonly smallBytes: number
  /** How much of one user may be in memory; at least one body. */
  readonly userBytes: number
  /** How much of all users may be. */
  readonly totalBytes: number
  /** How many times as long as a body held the event loop the next one waits. */
  readonly restFactor: number
}

export const LARGE_BODY_LIMITS: LargeBodyLimits = {
  maxBytes: 3 << 20,
  smallBytes: 64 << 10,
  userBytes: 16 << 20,
  totalBytes: 128 << 20,
  restFactor: 3,
}

export function createLargeBodies(clock: Clock, limits: LargeBodyLimits = LARGE_BODY_LIMITS): LargeBodies {
  const room = createRoom(limits)
  const turns = createTurns(clock, limits.restFactor)
  return {
    async read(exchange, user) {
      const bytes = claimedBytes(exchange, limits.maxBytes)
      if (bytes <= limits.smallBytes || bytes > limits.maxBytes) return exchange.readBody(limits.maxBytes)
      const leave = await room.enter(user, bytes)
      try {
        exchange.signal.throwIfAborted()
        const body = await exchange.readBody(limits.maxBytes)
        if (body.length > limits.smallBytes) await turns.take(user)
        return body
      } finally {
        // What is done with it follows without a break.
        setImmediate(leave)
      }
    },
  }
}

/** What the client says it will send; who does not say may send everything. */
function claimedBytes({ headers, version }: Exchange, maxBytes: number): number {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  return version === '2' || headers['transfer-encoding'] !== undefined ? maxBytes : 0
}

interface Waiting {
  readonly bytes: number
  readonly go: () => void
}

interface Room {
  /** Resolves to what gives the room back, to be called once. */
  enter(user: string, bytes: number): Promise<() => void>
}

function createRoom({ userBytes, totalBytes }: LargeBodyLimits): Room {
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
      return () => {
        add(user, -bytes)
        letIn()
      }
    },
  }
}

interface Turns {
  /** Resolves when it is the user's turn, which lasts until the event loop is free again. */
  take(user: string): Promise<void>
}

function createTurns(clock: Clock, restFactor: number): Turns {
  const queues = new Queues<() => void>()
  let isTaken = false
  const next = (): void => {
    const first = queues.takeFirst(() => true)
    isTaken = first !== undefined
    if (first === undefined) return
    const begunMs = clock.elapsed()
    first.item()
    setImmediate(() => clock.after((clock.elapsed() - begunMs) * restFactor, next))
  }
  return {
    take(user) {
      return new Promise((go) => {
        queues.add(user, go)
        if (isTaken) return
        isTaken = true
        // Not in the turn of whoever asks: what came before it is another's work.
        setImmediate(next)
      })
    },
  }
}

/** Queues by user, served in rotation. */
class Queues<T> {
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
