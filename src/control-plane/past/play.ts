/** Plays the changes after a moment into another store, at the pace at which they happened or faster. */
import type { LongHistory } from '#history/long-history.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { type Backend, prefixEnd, type Revision, type StorageEvent, type Write } from '#storage/backend.ts'

export interface PlayOptions {
  readonly from: Pick<LongHistory, 'changes' | 'timeOf'>
  /** A store with its state at `revision`, which has no other writer. */
  readonly into: Backend
  readonly revision: Revision
  /** Its `now` is the time up to which changes are played. */
  readonly clock: Clock
  readonly speed: number
  readonly signal: AbortSignal
}

/** Ends with the signal's reason, or with `compacted` if the history drops the changes first or has a gap. */
export async function play({ from, into, revision, clock, speed, signal }: PlayOptions): Promise<never> {
  for await (const { events } of from.changes({ start: '', end: prefixEnd(''), from: revision + 1, signal })) {
    for (const [changed, part] of Map.groupBy(events, ({ modRevision }) => modRevision)) {
      const dueMs = from.timeOf(changed) ?? 0
      const waitMs = (dueMs - clock.now()) / speed
      if (waitMs > 0) await sleep(clock, waitMs, signal)
      await into.commit(part.map(writeOf))
    }
  }
  throw signal.reason
}

/** Without the lease: the end of one is a change that is played too. */
function writeOf({ type, key, value }: StorageEvent): Write {
  return { key, value: type === 'delete' ? null : value }
}
