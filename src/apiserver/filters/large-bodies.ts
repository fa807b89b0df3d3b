/**
 * Large bodies, one at a time. A body of some hundred KiB holds the event loop for as long as it takes to decode, check
 * and encode; whoever sends many must not keep everybody else waiting. So they take turns, user by user, with a rest
 * after each in which the others are served, and the memory of those that wait is bounded too.
 */
import type { Clock } from '#lib/clock.ts'
import type { Exchange } from '#lib/http/exchange.ts'

import { createRoom, Queues, type RoomLimits } from '../answers/room.ts'

export interface LargeBodies {
  /** The body, when there is room for it and its turn has come. Rejects as `Exchange.readBody` does. */
  read(exchange: Exchange, user: string): Promise<Buffer>
}

export interface LargeBodyLimits extends RoomLimits {
  /** The largest body that is read at all: upstream's limit. */
  readonly maxBytes: number
  /** Up to here a body waits for nobody: it takes a few milliseconds. */
  readonly smallBytes: number
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
  const { maxBytes, smallBytes } = limits
  const readLarge = async (exchange: Exchange, user: string, claimed: number | undefined): Promise<Buffer> => {
    let place: ReturnType<typeof room.enter> | undefined
    const enter = async (bytes: number): Promise<void> => {
      await (place = room.enter(user, bytes))
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
      // What is done with it follows without a break. Who has gone while waiting for a place gets it yet, and leaves.
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
 * What the client says it will send. Who does not say is asked for nothing while what comes is small, and then takes the
 * room of the largest body until theirs has come: room that grew with a body could run out between two of them for ever.
 */
function claimedBytes({ headers, version }: Exchange): number | undefined {
  const length = headers['content-length']
  if (length !== undefined) return Number(length)
  return version === '2' || headers['transfer-encoding'] !== undefined ? undefined : 0
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
