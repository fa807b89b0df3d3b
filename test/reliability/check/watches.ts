/**
 * Checks the nine guarantees of a watch against the log of writes: filter, ordered, unique, atomic, bookmarkable,
 * resumable, is-create, reliable, prev-value.
 */
import type { Revision } from '#storage/backend.ts'
import { covers } from '#storage/event-feed.ts'

import type { SeenBatch, WatchRecord } from '../history.ts'
import type { Change } from '../store.ts'
import { show } from './describe.ts'
import { type Applied, isSame } from './replay.ts'
import type { Violation } from './violation.ts'

/** One watch, made ready: the revision it begins with is known. */
interface Stream {
  readonly from: Revision
  readonly batches: readonly SeenBatch[]
  readonly events: readonly Change[]
  /** The changes that it had to deliver up to its last position. */
  readonly expected: readonly Change[]
  readonly covers: (key: string) => boolean
}

type Rule = (stream: Stream) => Iterable<string>

const RULES: Readonly<Record<string, Rule>> = {
  filter,
  ordered,
  unique,
  atomic,
  bookmarkable,
  resumable,
  'is-create': isCreate,
  reliable,
  'prev-value': previousValue,
}

/** At most one violation of each rule for each watch. */
export function checkWatches(watches: readonly WatchRecord[], applied: readonly Applied[]): Violation[] {
  return watches.flatMap((watch) => {
    const { request, client, stuckBefore } = watch
    const name = `watcher ${client} on ${request.start}… from ${request.from} (${request.via})`
    const found = checkStream(streamOf(watch, applied)).map(({ rule, detail }) => ({
      rule,
      detail: `${name}: ${detail}`,
    }))
    if (stuckBefore === undefined) return found
    const at = watch.batches.at(-1)?.revision
    return [...found, { rule: 'reliable', detail: `${name}: came to ${at} and no further; ${stuckBefore} was reached` }]
  })
}

function checkStream(stream: Stream): Violation[] {
  return Object.entries(RULES).flatMap(([rule, check]) => {
    for (const detail of check(stream)) return [{ rule, detail }]
    return []
  })
}

function streamOf({ request, batches }: WatchRecord, applied: readonly Applied[]): Stream {
  const { start, end } = request
  // A watch from now on tells where it begins by an empty batch.
  const from = request.from ?? (batches[0]?.revision ?? Infinity) + 1
  const reached = Math.max(0, ...batches.map(({ revision }) => revision))
  const within = (key: string): boolean => covers(start, end, key)
  const expected = applied
    .filter(({ revision }) => revision >= from && revision <= reached)
    .flatMap(({ changes }) => changes.filter(({ key }) => within(key)))
  return { from, batches, events: batches.flatMap(({ events }) => events), expected, covers: within }
}

function* filter({ events, from, covers }: Stream): Iterable<string> {
  for (const { key, mod } of events) {
    if (!covers(key)) yield `${key} at ${mod} was not asked for`
    if (mod < from) yield `${key} at ${mod} is older than asked for`
  }
}

function* ordered({ batches, events }: Stream): Iterable<string> {
  for (const [at, { mod }] of events.entries()) {
    const before = events[at - 1]?.mod ?? 0
    if (mod < before) yield `revision ${mod} came after ${before}`
  }
  for (const [at, { revision }] of batches.entries()) {
    const before = batches[at - 1]?.revision ?? 0
    if (revision < before) yield `a batch up to ${revision} came after one up to ${before}`
  }
}

function* unique({ events }: Stream): Iterable<string> {
  const seen = new Set<string>()
  for (const { key, mod } of events) {
    const id = `${key} at ${mod}`
    if (seen.has(id)) yield `${id} came twice`
    seen.add(id)
  }
}

/** A revision comes whole, in one batch. */
function* atomic({ batches, expected }: Stream): Iterable<string> {
  const wanted = Map.groupBy(expected, ({ mod }) => mod)
  for (const { events } of batches) {
    for (const [mod, part] of Map.groupBy(events, (event) => event.mod)) {
      const whole = wanted.get(mod)?.length ?? 0
      if (part.length < whole) yield `revision ${mod} came with ${part.length} of its ${whole} changes`
    }
  }
}

/** A batch reports a revision; no later event may be at or before that revision. */
function* bookmarkable({ batches }: Stream): Iterable<string> {
  let reported = 0
  for (const { revision, events } of batches) {
    for (const { key, mod } of events) {
      if (mod <= reported) yield `${key} at ${mod} came after everything up to ${reported} was said to have come`
      if (mod > revision) yield `${key} at ${mod} came in a batch up to ${revision}`
    }
    reported = Math.max(reported, revision)
  }
}

/** The first event is the first one at or after the start revision. */
function* resumable({ events, expected, from }: Stream): Iterable<string> {
  const [first] = events
  const [wanted] = expected
  if (wanted !== undefined && (first === undefined || first.mod > wanted.mod)) {
    yield `the first event from ${from} on is ${wanted.key} at ${wanted.mod}, not ${first?.key} at ${first?.mod}`
  }
}

function* isCreate({ events, expected }: Stream): Iterable<string> {
  const known = byId(expected)
  for (const event of events) {
    const { key, mod, type, create, previous } = event
    const wanted = known.get(idOf(event))
    if (type === 'delete' || wanted === undefined) continue
    const isNew = wanted.previous === undefined
    if (isNew !== (create === mod) || isNew !== (previous === undefined)) {
      yield `${key} at ${mod} ${isNew ? 'is' : 'is not'} a creation, and says otherwise (created ${create}, before: ${show(previous)})`
    }
  }
}

/** Everything that happened has come, as it happened. */
function* reliable({ events, expected }: Stream): Iterable<string> {
  const came = byId(events)
  for (const wanted of expected) {
    const event = came.get(idOf(wanted))
    if (event === undefined) yield `${wanted.type} of ${wanted.key} at ${wanted.mod} did not come`
    else if (event.type !== wanted.type || event.value !== wanted.value) {
      yield `${event.type} ${show(event)} came instead of ${wanted.type} ${show(wanted)}`
    }
  }
  const known = byId(expected)
  for (const event of events) if (!known.has(idOf(event))) yield `${event.type} ${show(event)} came but never happened`
}

function* previousValue({ events, expected }: Stream): Iterable<string> {
  const known = byId(expected)
  for (const event of events) {
    const wanted = known.get(idOf(event))
    if (wanted !== undefined && !isSame(wanted.previous, event.previous)) {
      yield `before ${event.key} at ${event.mod} there was ${show(wanted.previous)}, not ${show(event.previous)}`
    }
  }
}

function idOf({ key, mod }: Change): string {
  return `${key} ${mod}`
}

function byId(changes: readonly Change[]): Map<string, Change> {
  return new Map(changes.map((change) => [idOf(change), change]))
}
