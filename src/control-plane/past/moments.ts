/** Describes the moments that the past can be read at: `GET /apis/hyperkube.io/v1/moments`. Pure. */
import type { RequestInfo } from '#auth/request-info.ts'
import type { LongHistory, Reach } from '#history/long-history.ts'
import type { Gap } from '#history/recorded-change.ts'
import { timeOf } from '#meta/time.ts'
import type { Revision } from '#storage/backend.ts'

export interface PointInTime {
  readonly resourceVersion: string
  /** Absent: the store does not know it. */
  readonly time?: string
}

/** Of the kind MomentRange in hyperkube.io/v1. */
export interface MomentRange {
  readonly kind: 'MomentRange'
  readonly apiVersion: 'hyperkube.io/v1'
  readonly oldest: PointInTime
  readonly newest: PointInTime
  /** Of the present state and its history together. */
  readonly bytes: number
  /** In order of time. */
  readonly gaps: readonly UnreadableRange[]
}

/** A part of the range that cannot be read. */
export interface UnreadableRange {
  readonly from: PointInTime
  readonly to: PointInTime
  /** For people. */
  readonly message: string
}

type Times = Pick<LongHistory, 'timeOf'>

export function isMomentsPath({ group, version, resource, name, subresource, moment }: RequestInfo): boolean {
  const isNamed = name !== '' || subresource !== '' || moment !== undefined
  return group === 'hyperkube.io' && version === 'v1' && resource === 'moments' && !isNamed
}

export function momentRangeOf(times: Times, reach: Reach): MomentRange {
  return {
    kind: 'MomentRange',
    apiVersion: 'hyperkube.io/v1',
    oldest: oldestOf(times, reach),
    newest: pointOf(times, reach.last),
    bytes: reach.bytes,
    gaps: reach.gaps.map((gap) => unreadable(times, gap)),
  }
}

/** The state after the compaction is the first that can be read. */
export function oldestOf(times: Times, { first }: Reach): PointInTime {
  return pointOf(times, Math.max(1, first))
}

export function pointOf(times: Times, revision: Revision): PointInTime {
  const timeMs = times.timeOf(revision)
  return { resourceVersion: String(revision), ...(timeMs !== undefined && { time: timeOf(timeMs) }) }
}

export function unreadable(times: Times, { after, until, reason }: Gap): UnreadableRange {
  return { from: pointOf(times, after), to: pointOf(times, until), message: reason }
}
