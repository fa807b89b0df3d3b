/**
 * Checks that revisions respect real time. The revision of a response places it after the write of that revision and
 * before the next one. This order is linearizable if no operation comes before one that had ended before it began.
 */
import type { Revision } from '#storage/backend.ts'

import type { History, Operation } from '../history.ts'
import { describe } from './describe.ts'
import { hasEffect, type Log } from './log.ts'
import type { Violation } from './violation.ts'

/** Something that happened after `start` and before `end`. */
interface Point {
  readonly revision: Revision
  readonly isWrite: boolean
  readonly start: number
  readonly end: number
  readonly what: () => string
}

export function checkOrder(log: Log, history: History): Violation[] {
  const points = [...writePoints(log), ...readPoints(history), ...eventPoints(history)]
  points.sort((a, b) => a.revision - b.revision || Number(b.isWrite) - Number(a.isWrite))
  const violations: Violation[] = []
  let latest: Point | undefined
  for (let at = 0; at < points.length && violations.length < 3;) {
    const first = points[at] as Point
    let end = at
    // Reads of the same revision are not ordered among themselves.
    while (end < points.length && isTogether(first, points[end] as Point)) end++
    const group = points.slice(at, end)
    for (const point of group) {
      if (latest === undefined || point.end >= latest.start) continue
      violations.push({
        rule: 'real-time order',
        detail: `This had ended: ${point.what()}; and only then began what stands before it: ${latest.what()}`,
      })
    }
    for (const point of group) if (latest === undefined || point.start > latest.start) latest = point
    at = end
  }
  return violations
}

function isTogether(a: Point, b: Point): boolean {
  return a.revision === b.revision && a.isWrite === b.isWrite
}

function* writePoints(log: Log): Generator<Point, void, undefined> {
  for (const { revision, start, end, commit, writes } of log.entries.values()) {
    const what = (): string =>
      commit ? describe(commit) : `a write of ${[...writes.keys()].join(', ')} at ${revision}`
    yield { revision, isWrite: true, start, end, what }
  }
}

function* readPoints({ operations }: History): Generator<Point, void, undefined> {
  for (const operation of operations) {
    const revision = revisionOf(operation)
    if (revision === undefined) continue
    // A past revision may be read at any time after it exists.
    const isPast = operation.method === 'range' && operation.argument.revision !== undefined
    const { start, end } = operation
    yield { revision, isWrite: false, start: isPast ? 0 : start, end, what: () => describe(operation) }
  }
}

/** The revision at which an operation saw the store; undefined when it says nothing about that. */
function revisionOf(operation: Operation): Revision | undefined {
  switch (operation.method) {
    case 'commit':
      return operation.result?.ok && hasEffect(operation) ? undefined : operation.result?.revision
    case 'range':
      return operation.result?.revision
    case 'revision':
      return operation.result
    default:
      return undefined
  }
}

/** An event, or a bookmark, shows that a revision has happened. */
function* eventPoints({ watches }: History): Generator<Point, void, undefined> {
  for (const { client, batches, request } of watches) {
    for (const { revision, events, tick } of batches) {
      const seen = Math.max(revision, ...events.map(({ mod }) => mod))
      // Before where it begins, a watch has delivered everything, whether that has happened or not.
      if (events.length === 0 && revision < (request.from ?? 0)) continue
      const what = (): string =>
        `watcher ${client} from ${request.from} (${request.via}) saw revision ${seen} [${tick}]`
      yield { revision: seen, isWrite: false, start: 0, end: tick, what }
    }
  }
}
