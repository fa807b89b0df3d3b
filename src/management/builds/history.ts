/** Chooses the ended Operations to delete. Pure. */
import type { Operation } from '../kinds/operation.ts'
import { isEnded } from './decide.ts'

const KEPT = 50
const KEPT_AFTER_REMOVAL_MS = 7 * 24 * 3_600_000

/** A cluster keeps its newest ones. Those of a removed cluster stay for a week, because they say what it left. */
export function outdated(operations: readonly Operation[], hasCluster: boolean, nowMs: number): readonly Operation[] {
  const ended = operations
    .filter((operation) => isEnded(operation))
    .toSorted((one, other) => (timeOf(one) < timeOf(other) ? 1 : -1))
  if (hasCluster) return ended.slice(KEPT)
  return ended.filter((operation) => nowMs - Date.parse(timeOf(operation)) > KEPT_AFTER_REMOVAL_MS)
}

function timeOf({ metadata, status }: Operation): string {
  return status?.endedAt ?? metadata.creationTimestamp ?? ''
}
