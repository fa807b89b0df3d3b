/** Decides which parts of a history file are dropped, and when a complete state is due. */
import type { Segment } from './segments.ts'

export interface RetentionLimits {
  readonly maxAgeMs: number
  readonly maxBytes: number
}

export interface SegmentSizes {
  /** In order of time. */
  readonly segments: readonly Segment[]
  /** The size of the file. */
  readonly bytes: number
}

/** A read looks at all changes since a complete state, so they must not become many. */
const MIN_CHANGES_BYTES = 32 << 20
const CHANGES_PER_STATE = 8
/** Only what is before a complete state can be dropped: a part of the limits at a time. */
const PARTS = 4

export function wantsWholeState({ segments, bytes }: SegmentSizes, nowMs: number, limits: RetentionLimits): boolean {
  const at = segments.findLastIndex(({ isWhole }) => isWhole)
  const whole = segments[at]
  const later = segments.slice(at + 1)
  if (whole === undefined || later.length === 0) return false
  if (nowMs - whole.untilMs >= limits.maxAgeMs / PARTS) return true
  const rawBytes = sizeOf(later)
  if (rawBytes > Math.max(MIN_CHANGES_BYTES, CHANGES_PER_STATE * whole.rawBytes)) return true
  const share = rawBytes / Math.max(1, sizeOf(segments))
  return bytes * share > limits.maxBytes / PARTS
}

/** The oldest segments, up to a complete state. */
export function segmentsToDrop({ segments, bytes }: SegmentSizes, nowMs: number, limits: RetentionLimits): Segment[] {
  const wholes = segments.flatMap(({ isWhole }, at) => (isWhole ? [at] : []))
  const keptFrom = wholes.findLast((at) => nowMs - (segments[at] as Segment).untilMs >= limits.maxAgeMs) ?? 0
  const raw = Math.max(1, sizeOf(segments))
  // The share of a segment in the file is about its share of the changes.
  const bytesFrom = (at: number): number => (bytes * sizeOf(segments.slice(at))) / raw
  const fitting = wholes.find((at) => at >= keptFrom && bytesFrom(at) <= limits.maxBytes) ?? wholes.at(-1) ?? 0
  return segments.slice(0, Math.max(keptFrom, fitting))
}

function sizeOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, { rawBytes }) => sum + rawBytes, 0)
}
