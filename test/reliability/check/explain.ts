/**
 * Searches for unobserved events that explain an unexpected response: a commit without an acknowledgement, or an
 * expired lease. Each possible explanation is a separate log.
 */
import type { Revision } from '#storage/backend.ts'

import type { OperationOf } from '../history.ts'
import type { Item } from '../store.ts'
import { causesOf, type Entry, entryOf, type Log, type SeenDelete } from './log.ts'
import type { Observation } from './observations.ts'

/** A key that was shown otherwise than the log has it. */
export interface Mismatch {
  readonly key: string
  readonly known: Item | undefined
  readonly shown: Item | undefined
  readonly revision: Revision
  /** Each version the key had so far, with the last revision at which it was seen. */
  readonly versions: readonly { readonly item: Item; readonly seenAt: Revision }[]
  readonly observer: Observation
}

/** Revisions at which something may have happened unseen, tried from the latest. */
const TRIED_REVISIONS = 8

/** Logs in which the mismatch is none; the likeliest first. */
export function* explain(log: Log, mismatch: Mismatch): Generator<Log, void, undefined> {
  const { key, known, shown, observer } = mismatch
  if (known !== undefined && (shown === undefined || shown.create > known.create)) yield* supposeDelete(log, mismatch)
  if (shown === undefined || shown.create >= (known?.create ?? Infinity) || log.entries.has(shown.create)) return
  // It was created earlier than any write we know of.
  for (const commit of log.spare) {
    const write = commit.argument.find((each) => each.key === key)
    const mayCreate = write?.value != null && (write.expected ?? 0) === 0
    if (mayCreate && commit.start < observer.end) yield withEntry(log, entryOf(commit, shown.create))
  }
}

/** The version that was there had gone by then. */
function* supposeDelete(log: Log, mismatch: Mismatch): Generator<Log, void, undefined> {
  const { key, shown, versions, observer } = mismatch
  const by = Math.min(mismatch.revision, (shown?.create ?? Infinity) - 1)
  const gone = versions.findLast(({ item }) => item.mod <= by)
  if (gone === undefined) return
  const seen: SeenDelete = { key, item: gone.item, tick: observer.end, ms: observer.endMs }
  let tried = 0
  for (let revision = by; revision > gone.seenAt && tried < TRIED_REVISIONS; revision--) {
    const entry = log.entries.get(revision)
    // A watcher saw only deletions of its keys, so the cause may have deleted further keys.
    if (entry !== undefined && entry.guessedFrom === undefined) continue
    if (entry === undefined) tried++
    const spare = entry?.commit === undefined ? log.spare : new Set(log.spare).add(entry.commit)
    for (const cause of causesOf({ ...log, spare }, revision, [...(entry?.guessedFrom ?? []), seen])) {
      yield withEntry({ ...log, spare }, cause)
    }
  }
}

function withEntry(log: Log, entry: Entry): Log {
  const spare = new Set<OperationOf<'commit'>>(log.spare)
  if (entry.commit !== undefined) spare.delete(entry.commit)
  return { ...log, entries: new Map(log.entries).set(entry.revision, entry), spare }
}
