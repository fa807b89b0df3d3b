/**
 * Trail: who made the newest writes of this server, and why. It is in memory and bounded: after a restart, and for
 * writes of other servers, the writer is not known.
 */
import { activeCauses, type Cause } from '#lib/causes.ts'
import type { Clock } from '#lib/clock.ts'
import { HISTORY_WINDOW_MS } from '#storage/auto-compaction.ts'
import type { Revision } from '#storage/backend.ts'

export interface WriteNote {
  /** The name of the user, after impersonation. */
  readonly user: string
  readonly verb: string
  readonly manager: string
  /** Empty for a write of the server itself. */
  readonly auditId: string
  /** The objects whose changes led to the write, as its writer claims. */
  readonly because: readonly Cause[]
}

/** About 300 bytes each. */
const MAX_NOTES = 20_000

interface Kept extends WriteNote {
  readonly atMs: number
}

export interface NotedRequest {
  readonly user: { readonly name: string }
  /** Default: `update`. */
  readonly verb?: string
  /** The field manager. */
  readonly manager: string
  /** Absent without a request. */
  readonly auditId?: string
}

export class Trail {
  readonly #clock: Pick<Clock, 'elapsed'>
  /** In order of insertion, so that the first is the oldest. */
  readonly #notes = new Map<Revision, Kept>()

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock
  }

  note(revision: Revision, { user, verb = 'update', manager, auditId = '' }: NotedRequest): void {
    const atMs = this.#clock.elapsed()
    this.#notes.set(revision, { user: user.name, verb, manager, auditId, because: activeCauses(), atMs })
    this.#forget(atMs - HISTORY_WINDOW_MS)
  }

  of(revision: Revision): WriteNote | undefined {
    const kept = this.#notes.get(revision)
    if (kept === undefined) return undefined
    const { atMs: _, ...note } = kept
    return note
  }

  /** Two at a time: more than are added. */
  #forget(beforeMs: number): void {
    let left = 2
    for (const [revision, { atMs }] of this.#notes) {
      if (left-- === 0 || (atMs >= beforeMs && this.#notes.size <= MAX_NOTES)) return
      this.#notes.delete(revision)
    }
  }
}
