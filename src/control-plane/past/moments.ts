/** Describes the moments that the past can be read at: `GET /apis/hyperkube.io/v1/moments`. Pure. */
import type { RequestInfo } from '#auth/request-info.ts'
import { timeOf } from '#meta/time.ts'
import type { Backend, BackendHealth, Revision } from '#storage/backend.ts'

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
  readonly gaps: readonly Gap[]
}

/** A part of the range that cannot be read. */
interface Gap {
  readonly from: PointInTime
  readonly to: PointInTime
  /** For people. */
  readonly message: string
}

/** The figures of a history beside the store. */
interface HistoryFigures {
  readonly oldest: PointInTime
  readonly bytes: number
  readonly gaps: readonly Gap[]
}

export type StoreFigures = Pick<BackendHealth, 'revision' | 'compactedRevision' | 'sizeBytes'> & Pick<Backend, 'timeOf'>

export function isMomentsPath({ group, version, resource, name, subresource, moment }: RequestInfo): boolean {
  const isNamed = name !== '' || subresource !== '' || moment !== undefined
  return group === 'hyperkube.io' && version === 'v1' && resource === 'moments' && !isNamed
}

/** Without `history`: of the store alone. */
export function momentRangeOf(store: StoreFigures, history?: HistoryFigures): MomentRange {
  return {
    kind: 'MomentRange',
    apiVersion: 'hyperkube.io/v1',
    oldest: history?.oldest ?? oldestOf(store),
    newest: pointOf(store, store.revision),
    bytes: store.sizeBytes + (history?.bytes ?? 0),
    gaps: history?.gaps ?? [],
  }
}

/** The state after the compaction is the first that can be read. */
export function oldestOf(store: StoreFigures): PointInTime {
  return pointOf(store, Math.max(1, store.compactedRevision))
}

export function pointOf(store: Pick<Backend, 'timeOf'>, revision: Revision): PointInTime {
  const timeMs = store.timeOf(revision)
  return { resourceVersion: String(revision), ...(timeMs !== undefined && { time: timeOf(timeMs) }) }
}
