/**
 * Reconstructs the total order of writes from a history of operations. Each acknowledged commit has a revision. Values
 * are unique, so a value identifies the revision of its commit. An unacknowledged commit happened if a reader saw its
 * value. A delete has no value; it is matched with the commits and leases that could have caused it.
 */
import type { LeaseId, Revision } from '#storage/backend.ts'

import { type History, isUnknown, type OperationOf } from '../history.ts'
import type { Change, Item, TextWrite } from '../store.ts'
import { describe, show } from './describe.ts'
import { leaseEnds, type LeaseEnds } from './leases.ts'
import type { Violation } from './violation.ts'

/** The effect of one revision. It happened after the tick `start` and before `end`. */
export interface Entry {
  readonly revision: Revision
  /** null deletes. */
  readonly writes: ReadonlyMap<string, { readonly value: string; readonly lease: LeaseId } | null>
  readonly start: number
  readonly end: number
  /** The commit, unless it was the end of a lease. */
  readonly commit?: OperationOf<'commit'>
  /** The end of this lease; more keys may have gone with it than anybody has seen going. */
  readonly lease?: LeaseId
  /** Set when the cause was chosen for what was seen: another may fit as well. */
  readonly guessedFrom?: readonly SeenDelete[]
}

export interface Sighting {
  readonly item: Item
  readonly tick: number
}

export interface Log {
  readonly entries: Map<Revision, Entry>
  /** Commits without a response and without an observed value. Each of them may still have happened. */
  readonly spare: Set<OperationOf<'commit'>>
  readonly leaseEnds: LeaseEnds
  readonly violations: Violation[]
}

export function buildLog(history: History): Log {
  const commits = history.operations.filter((operation) => operation.method === 'commit')
  const log: Log = {
    entries: new Map(),
    spare: new Set(commits.filter(isUnknown)),
    leaseEnds: leaseEnds(history),
    violations: [],
  }
  for (const commit of commits) {
    if (commit.result?.ok && hasEffect(commit)) enter(log, commit, commit.result.revision)
  }
  placeUnknown(log, commits, sightings(history))
  explainDeletes(log, history)
  return log
}

/** Deleting nothing takes no revision: such a commit is a read. */
export function hasEffect({ argument, result }: OperationOf<'commit'>): boolean {
  return argument.some(({ value }, at) => value !== null || result?.items[at] != null)
}

/** False when the revision has been given to something else. */
function enter(log: Log, commit: OperationOf<'commit'>, revision: Revision): boolean {
  const other = log.entries.get(revision)
  if (other !== undefined) {
    const both = `${describe(commit)} and to ${describeEntry(other)}`
    fault(log, 'unique revision', `Revision ${revision} was given to ${both}`)
    return false
  }
  log.entries.set(revision, entryOf(commit, revision))
  log.spare.delete(commit)
  return true
}

export function entryOf(commit: OperationOf<'commit'>, revision: Revision): Entry {
  const { argument, start, end } = commit
  return { revision, writes: writesOf(argument), start, end, commit }
}

function writesOf(writes: readonly TextWrite[]): Entry['writes'] {
  return new Map(writes.map(({ key, value, lease = 0 }) => [key, value === null ? null : { value, lease }]))
}

/** Every item anybody was shown. */
function* sightings({ operations, watches }: History): Generator<Sighting, void, undefined> {
  for (const operation of operations) {
    const { end: tick } = operation
    if (operation.method !== 'commit' && operation.method !== 'range') continue
    for (const item of operation.result?.items ?? []) if (item !== null) yield { item, tick }
  }
  for (const { event, tick } of eventsOf(watches)) {
    const { type, previous, ...item } = event
    if (type === 'put') yield { item, tick }
    if (previous !== undefined) yield { item: previous, tick }
  }
}

function* eventsOf(watches: History['watches']): Generator<SeenEvent, void, undefined> {
  for (const { batches } of watches) {
    for (const { events, tick, ms } of batches) for (const event of events) yield { event, tick, ms }
  }
}

interface SeenEvent {
  readonly event: Change
  readonly tick: number
  readonly ms: number
}

/**
 * Assigns a revision to each unacknowledged commit whose value a reader saw. A value without a writer is a violation.
 */
function placeUnknown(log: Log, commits: readonly OperationOf<'commit'>[], seen: Iterable<Sighting>): void {
  const writers = new Map<string, OperationOf<'commit'>>()
  for (const commit of commits) for (const { value } of commit.argument) if (value !== null) writers.set(value, commit)
  const placed = new Map<OperationOf<'commit'>, Revision>()
  for (const { item, tick } of seen) {
    const writer = writers.get(item.value)
    const problem = problemOf(item, writer, tick)
    if (problem !== undefined) {
      fault(log, 'linearizable', `${show(item)} was seen, but ${problem}`)
      continue
    }
    if (writer === undefined || !isUnknown(writer)) continue
    const before = placed.get(writer)
    if (before !== undefined && before !== item.mod) {
      fault(log, 'unique revision', `${describe(writer)} was seen at revision ${before} and at ${item.mod}`)
    }
    if (before !== undefined) continue
    placed.set(writer, item.mod)
    enter(log, writer, item.mod)
  }
}

function problemOf(item: Item, writer: OperationOf<'commit'> | undefined, tick: number): string | undefined {
  if (writer === undefined) return 'nobody wrote that value'
  if (!writer.argument.some(({ key, value }) => key === item.key && value === item.value)) {
    return `that value was written by ${describe(writer)}`
  }
  if (writer.start > tick) return `it was written later, by ${describe(writer)}`
  if (writer.result?.ok === false) return `that commit was refused: ${describe(writer)}`
  if (writer.error !== undefined && !isUnknown(writer)) return `that commit failed: ${writer.error.message}`
  if (writer.result !== undefined && writer.result.revision !== item.mod) {
    return `it was acknowledged at revision ${writer.result.revision}`
  }
  return undefined
}

/** Finds who caused the deletes that show in events only. */
function explainDeletes(log: Log, { watches }: History): void {
  const unexplained = new Map<Revision, Map<string, SeenDelete>>()
  for (const { event, tick, ms } of eventsOf(watches)) {
    const { type, key, mod, previous } = event
    if (type === 'put' || log.entries.has(mod)) continue
    const keys = unexplained.get(mod) ?? new Map<string, SeenDelete>()
    unexplained.set(mod, keys)
    const known = keys.get(key)
    if (known === undefined || known.tick > tick) keys.set(key, { key, item: previous, tick, ms })
  }
  for (const [revision, keys] of [...unexplained].sort(([a], [b]) => a - b)) {
    const [entry] = causesOf(log, revision, [...keys.values()])
    if (entry?.commit !== undefined) log.spare.delete(entry.commit)
    const names = [...keys.keys()]
    if (entry === undefined)
      fault(log, 'linearizable', `Nobody asked for the delete of ${names.join(', ')} at ${revision}`)
    const writes = new Map(names.map((key) => [key, null]))
    log.entries.set(revision, entry ?? { revision, writes, start: 0, end: Infinity })
  }
}

export interface SeenDelete {
  readonly key: string
  /** The deleted item; undefined if it is unknown. */
  readonly item: Item | undefined
  /** When it was first known to have happened. */
  readonly tick: number
  readonly ms: number
}

/**
 * The possible causes of the deletion of these keys at that revision, the likeliest first: unacknowledged commits and
 * ends of leases.
 */
export function causesOf(
  { spare, leaseEnds }: Pick<Log, 'spare' | 'leaseEnds'>,
  revision: Revision,
  deletes: readonly SeenDelete[],
): Entry[] {
  const candidates = [...spare].filter((commit) => deletes.every((seen) => mayHaveDeleted(commit, seen)))
  // The smallest first: one of many keys says more, and would have been seen elsewhere. Guarded ones fit nothing else.
  candidates.sort((a, b) => a.argument.length - b.argument.length || Number(isGuarded(b)) - Number(isGuarded(a)))
  const entries = candidates.map((commit): Entry => ({ ...entryOf(commit, revision), guessedFrom: deletes }))
  const lease = deletes[0]?.item?.lease ?? 0
  if (!deletes.every(({ item, ...by }) => item?.lease === lease && leaseEnds.mayHaveEnded(lease, by))) return entries
  const writes = new Map(deletes.map(({ key }) => [key, null]))
  const end: Entry = { revision, writes, start: 0, end: Infinity, lease, guessedFrom: deletes }
  const single = candidates.filter(({ argument }) => argument.length === 1).length
  return entries.toSpliced(single, 0, end)
}

export function mayHaveDeleted({ argument, start }: OperationOf<'commit'>, { key, item, tick }: SeenDelete): boolean {
  const write = argument.find((each) => each.key === key)
  if (write?.value !== null || start >= tick) return false
  return write.expected === undefined || item === undefined || write.expected === item.mod
}

function isGuarded({ argument }: OperationOf<'commit'>): boolean {
  return argument.some(({ expected }) => expected !== undefined)
}

function fault(log: Log, rule: string, detail: string): void {
  log.violations.push({ rule, detail })
}

function describeEntry({ commit, writes }: Entry): string {
  return commit === undefined ? `a write of ${[...writes.keys()].join(', ')}` : describe(commit)
}
