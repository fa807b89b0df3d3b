/** The interface of an attack: one client's harmful requests until it is aborted, and the counts that it reports. */
import type { Target } from '../program.ts'

/** Counts the outcomes of an attack's requests. */
export class Tally {
  sent = 0
  /** Connections or streams the server ended. */
  cut = 0
  readonly statuses: Record<number, number> = {}

  answered(status: number): void {
    this.statuses[status] = (this.statuses[status] ?? 0) + 1
  }
}

export interface AttackContext {
  readonly target: Target
  /** Aborted when it is enough. */
  readonly signal: AbortSignal
  readonly tally: Tally
  /** 1 for the whole thing; less for a short form of it. */
  readonly scale: number
}

export interface Attack {
  readonly what: string
  /** Shorter, and the server has had no chance to cut it off. */
  readonly minMs?: number
  /** The server must have ended some of it when it lasted `minMs`. */
  readonly isCut?: boolean
  /** Answers that show that the server understood; undefined: any. */
  readonly expects?: RegExp
  /** Before the clock starts, by a client with rights. */
  prepare?(target: Target, scale: number): Promise<void>
  /** Resolves when it has stopped. Throws only for defects of its own. */
  run(context: AttackContext): Promise<void>
}

/** Runs `work` again and again in `count` lanes side by side until the signal; what breaks is counted and begun anew. */
export async function inLanes(
  { signal, tally }: AttackContext,
  count: number,
  work: (lane: number) => Promise<void>,
): Promise<void> {
  const lane = async (n: number): Promise<void> => {
    while (!signal.aborted) {
      try {
        await work(n)
      } catch {
        tally.cut++
        await rest(20)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, Math.round(count)) }, (_, n) => lane(n)))
}

/** Resolves after `ms`, or when the signal is aborted. */
export function rest(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    function done(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    signal?.addEventListener('abort', done, { once: true })
  })
}
