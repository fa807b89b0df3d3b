/** Checks the recorded history of a reliability run against every guarantee of a store. */
import type { Revision } from '#storage/backend.ts'

import type { History, Operation, OperationOf, WatchRecord } from '../history.ts'
import { describe } from './describe.ts'
import { checkLeases } from './leases.ts'
import { buildLog } from './log.ts'
import { checkOrder } from './order.ts'
import { replay } from './replay.ts'
import type { Violation } from './violation.ts'
import { checkWatches } from './watches.ts'

export interface CheckOptions {
  /** How long after its time a lease may go on: a restart begins it anew. */
  readonly leaseGraceMs: number
}

/** Empty when all is well. */
export function checkHistory(history: History, { leaseGraceMs }: CheckOptions): Violation[] {
  const { log, applied, violations } = replay(buildLog(history), history)
  return [
    ...log.violations,
    ...checkOrder(log, history),
    ...violations,
    ...checkWatches(history.watches, applied),
    ...checkLeases(history, leaseGraceMs),
    ...checkFailures(history),
  ]
}

/** Failures that say what is not true. */
function checkFailures({ operations, watches }: History): Violation[] {
  const compactions = operations.filter((operation) => operation.method === 'compact')
  const isCompacted = (revision: Revision, by: number): boolean =>
    compactions.some(({ argument, start }) => argument >= revision && start < by)
  const ranges = operations.filter((operation) => operation.method === 'range')
  return [
    ...[...operations, ...watches].flatMap(({ error }) =>
      error?.code === 'corrupt' ? [{ rule: 'corrupt', detail: error.message }] : [],
    ),
    ...ranges.flatMap((range) => rangeFailure(range, operations, isCompacted)),
    ...watches.flatMap((watch) => watchFailure(watch, isCompacted)),
  ]
}

type IsCompacted = (revision: Revision, by: number) => boolean

function rangeFailure(range: OperationOf<'range'>, all: readonly Operation[], isCompacted: IsCompacted): Violation[] {
  const { error, end, argument } = range
  const { revision = Infinity } = argument
  if (error?.code === 'compacted' && !isCompacted(revision + 1, end)) {
    return [{ rule: 'history', detail: `Nobody had compacted revision ${revision}: ${describe(range)}` }]
  }
  if (error?.code === 'future-revision' && isPast(all, revision, range)) {
    return [{ rule: 'linearizable', detail: `Revision ${revision} had been acknowledged: ${describe(range)}` }]
  }
  return []
}

/** The watch cache has a limited window; the backend loses history only by compaction. */
function watchFailure({ request, error, client }: WatchRecord, isCompacted: IsCompacted): Violation[] {
  const { from = 0, via } = request
  if (error?.code !== 'compacted' || via === 'cache' || isCompacted(from, Infinity)) return []
  return [{ rule: 'history', detail: `Nobody had compacted ${from}, where watcher ${client} began` }]
}

function isPast(operations: readonly Operation[], revision: Revision, { start }: Operation): boolean {
  return operations.some(
    (other) =>
      other.method === 'commit' && other.end < start && other.result?.ok === true && other.result.revision >= revision,
  )
}
