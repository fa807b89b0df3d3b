/**
 * Handles large bodies one at a time, because decoding, checking and encoding one blocks the event loop. Users take
 * turns, and other requests run after each body. The memory of waiting bodies is bounded too.
 */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import { createMemoryBudget, Queues, type MemoryLimits } from './response-memory.ts'

export interface LargeBodies {
  /** Resolves with the body when its memory is reserved and its turn has come. Rejects as `Exchange.readBody` does. */
  read(exchange: Exchange, user: string): Promise<Buffer>
}

export interface LargeBodyLimits extends MemoryLimits {
  /** The largest accepted body: upstream's limit. */
  readonly maxBytes: number
  /** Bodies up to this size do not wait: they take a few milliseconds. */
  readonly smallBytes: number
  /** The pause after a body, as a multiple of the time for which it blocked the event loop. */
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
  const memory = createMemoryBudget(limits)
  const turns = createTurns(clock, limits.restFactor)
  const { maxBytes, smallBytes } = limits
  const readLarge = async (exchange: Exchange, user: string, claimed: number | undefined): Promise<Buffer> => {
    let place: ReturnType<typeof memory.reserve> | undefined
    const enter = async (bytes: number): Promise<void> => {
      await (place = memory.reserve(user, bytes))
      exchange.signal.throwIfAborted()
    }
    try {
      if (claimed !== undefined) await enter(claimed)
      const growing = { freeBytes: smallBytes, mayGrow: () => enter(maxBytes) }
      const body = await exchange.readBody(maxBytes, claimed === undefined ? growing : undefined)
      if (place !== undefined) (await place)(body.length)
      if (body.length > smallBytes) await turns.take(user)
      return body
    } finally {
      // The caller processes the body synchronously after this. A client that left while waiting still gets its
      // turn.
      void place?.then((leave) => setImmediate(leave))
    }
  }
  return {
    read(exchange, user) {
      const claimed = claimedBytes(exchange)
      const isFree = claimed !== undefined && (claimed <= smallBytes || claimed > maxBytes)
      return isFree ? exchange.readBody(maxBytes) : readLarge(exchange, user, claimed)
    },
  }
}

/**
 * The announced size. Without one, nothing is reserved while the body is small, and then the maximum size until it is
 * complete: a reservation that grows with a body could deadlock two of them.
 */
function claimedBytes({ headers, version }: Exchange): number | undefined {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  return version === '2' || headers['transfer-encoding'] !== undefined ? undefined : 0
}

interface Turns {
  /** Resolves when it is the user's turn, which lasts until the event loop is idle again. */
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
        // Not in the current turn of the event loop, which belongs to earlier work.
        setImmediate(next)
      })
    },
  }
}
