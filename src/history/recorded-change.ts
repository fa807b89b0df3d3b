/** A change of a key, as the history has it. */
import { type KeyValue, type Revision, StorageError } from '#storage/backend.ts'

/**
 * - `put` and `delete`: a change at `modRevision`
 * - `state`: no change, but the value of the key when a complete state was recorded
 */
export type ChangeType = 'put' | 'delete' | 'state'

export interface RecordedChange extends Omit<KeyValue, 'lease'> {
  readonly type: ChangeType
  /** The writer and the causes as JSON. Empty: not known. */
  readonly note: string
}

/** The revisions between two recorded ones whose changes are not known. */
export interface Gap {
  /** The last recorded revision before the gap. */
  readonly after: Revision
  /** The first revision that is known again, by a complete state. */
  readonly until: Revision
  readonly afterMs: number
  readonly untilMs: number
  readonly reason: string
}

/** Refuses what is within a gap. */
export class HistoryGapError extends StorageError {
  readonly gap: Gap

  constructor(gap: Gap) {
    const { after, until, reason } = gap
    const message = `The history has a gap between the revisions ${after} and ${until}: ${reason}`
    super('compacted', message, { compactedRevision: until })
    this.name = 'HistoryGapError'
    this.gap = gap
  }
}

/** A range of keys, as in RangeOptions. */
export interface KeyRange {
  readonly start: string
  readonly end: string
}

export function isInRange(key: string, { start, end }: KeyRange): boolean {
  return key >= start && key < end
}
