/**
 * The times of commits, to a second: the first commit of each second has an entry. Times never decrease with the
 * revision: while a clock is set back, commits have the time before the change.
 */
import { partitionPoint } from '#lib/collections/partition-point.ts'

import type { Revision } from './backend.ts'

export type CommitTime = readonly [revision: Revision, atMs: number]

export class CommitTimes {
  /** Ascending in both. */
  #entries: CommitTime[]

  constructor(known: Iterable<CommitTime> = []) {
    this.#entries = [...known]
  }

  get entries(): readonly CommitTime[] {
    return this.#entries
  }

  /** Returns the time of the entry if the commit is the first of its second. */
  note(revision: Revision, nowMs: number): number | undefined {
    const last = this.#entries.at(-1)
    if (last !== undefined && (revision <= last[0] || second(nowMs) <= second(last[1]))) return undefined
    this.#entries.push([revision, nowMs])
    return nowMs
  }

  /** Undefined if the commit is older than the first entry. */
  timeOf(revision: Revision): number | undefined {
    return this.#entries[this.#countWhile((entry) => entry[0] <= revision) - 1]?.[1]
  }

  /**
   * The last revision in the second of `timeMs` or before; `latest` if all commits are. Undefined if only commits
   * without an entry can be.
   */
  revisionAt(timeMs: number, latest: Revision): Revision | undefined {
    const count = this.#countWhile((entry) => second(entry[1]) <= second(timeMs))
    if (count === 0) return undefined
    const next = this.#entries[count]
    return next === undefined ? latest : next[0] - 1
  }

  /** Drops what only commits before `revision` need. */
  forget(revision: Revision): void {
    const kept = Math.max(0, this.#countWhile((entry) => entry[0] <= revision) - 1)
    if (kept > 0) this.#entries = this.#entries.slice(kept)
  }

  /** Of commits up to `revision`. */
  until(revision: Revision): readonly CommitTime[] {
    return this.#entries.slice(
      0,
      this.#countWhile((entry) => entry[0] <= revision),
    )
  }

  /** The number of entries before the first for which the condition is false. */
  #countWhile(holds: (entry: CommitTime) => boolean): number {
    const entries = this.#entries
    return partitionPoint(0, entries.length, (index) => holds(entries[index] as CommitTime))
  }
}

function second(ms: number): number {
  return Math.floor(ms / 1000)
}
