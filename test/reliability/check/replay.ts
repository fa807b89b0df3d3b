/**
 * Replays the log of writes through a model of the store and compares every response with it. Responses contain
 * previous values of commits, current values of refusals, and ranges. If an unobserved event cannot explain a
 * difference, it is a violation.
 */
import type { Revision } from '#storage/backend.ts'

import type { History, OperationOf } from '../history.ts'
import type { Change, Item } from '../store.ts'
import { describe, show } from './describe.ts'
import { explain, type Mismatch } from './explain.ts'
import type { Entry, Log } from './log.ts'
import { gatherObservations, type Answer, type Observation, type Observations } from './observations.ts'
import type { Violation } from './violation.ts'

/** The changes of a revision, as every watch must deliver them. */
export interface Applied {
  readonly revision: Revision
  readonly changes: readonly Change[]
}

export interface Replay {
  /** With what must have happened unseen. */
  readonly log: Log
  /** In order of revision. */
  readonly applied: readonly Applied[]
  readonly violations: readonly Violation[]
}

/** Histories of right stores need a handful; a wrong one is not explained by more. */
const MAX_ATTEMPTS = 150

export function replay(log: Log, history: History): Replay {
  const observations = gatherObservations(history)
  let furthest: Attempt | undefined
  let attempts = 0
  const search = (log: Log): Attempt | undefined => {
    const attempt = new Attempt(log, observations, false)
    attempt.run()
    if (furthest === undefined || attempt.reached > furthest.reached) furthest = attempt
    if (attempt.mismatch === undefined) return attempt
    for (const explained of explain(log, attempt.mismatch)) {
      if (++attempts > MAX_ATTEMPTS) return undefined
      const found = search(explained)
      if (found !== undefined) return found
    }
    return undefined
  }
  const found = search(log)
  if (found !== undefined) return found
  // Nothing explains it all: everything that is wrong with the best explanation.
  const last = new Attempt(furthest?.log ?? log, observations, true)
  last.run()
  return last
}

class Attempt implements Replay {
  readonly log: Log
  readonly applied: Applied[] = []
  readonly violations: Violation[] = []
  /** The first thing that an explanation is needed for. */
  mismatch: Mismatch | undefined
  reached: Revision = 0
  readonly #observations: Observations
  /** Whether to continue after a mismatch, to the end of the history. */
  readonly #isFinal: boolean
  readonly #state = new Map<string, Item>()
  /** By key: each version it had, with the last revision at which that was seen. */
  readonly #versions = new Map<string, { readonly item: Item; seenAt: Revision }[]>()

  constructor(log: Log, observations: Observations, isFinal: boolean) {
    this.log = log
    this.#observations = observations
    this.#isFinal = isFinal
  }

  run(): void {
    const revisions = new Set([...this.log.entries.keys(), ...this.#observations.keys()])
    for (const revision of [...revisions].sort((a, b) => a - b)) {
      const entry = this.log.entries.get(revision)
      if (entry !== undefined) this.#apply(entry)
      for (const observation of this.#observations.get(revision) ?? []) this.#compare(observation, revision)
      if (this.mismatch !== undefined && !this.#isFinal) return
      this.reached = revision
    }
  }

  #apply({ revision, writes, commit }: Entry): void {
    if (commit !== undefined) this.#compareItems(commit, revision - 1)
    const changes: Change[] = []
    for (const [key, write] of writes) {
      const previous = this.#state.get(key)
      if (write === null) {
        if (previous === undefined) continue
        changes.push({ ...previous, type: 'delete', mod: revision, previous })
        this.#state.delete(key)
        continue
      }
      const item: Item = { key, ...write, create: previous?.create ?? revision, mod: revision }
      changes.push({ ...item, type: 'put', ...(previous && { previous }) })
      this.#state.set(key, item)
      const versions = this.#versions.get(key) ?? []
      this.#versions.set(key, versions)
      versions.push({ item, seenAt: revision })
    }
    this.applied.push({ revision, changes })
  }

  #compare(observation: Observation, revision: Revision): void {
    if (observation.method === 'commit') this.#compareItems(observation, revision)
    else if (observation.method === 'range') this.#compareRange(observation, revision)
    else {
      const { key, shown } = observation
      this.#compareItem({ key, known: this.#state.get(key), shown, revision }, observation)
    }
  }

  /** Compares the previous values that a commit returned, and checks the results of its guards. */
  #compareItems(operation: OperationOf<'commit'>, revision: Revision): void {
    const { result } = operation
    let unfit: Mismatch | undefined
    operation.argument.forEach(({ key, expected }, at) => {
      const known = this.#state.get(key)
      if (result) this.#compareItem({ key, known, shown: result.items[at] ?? undefined, revision }, operation)
      if (expected === undefined || expected === (known?.mod ?? 0)) return
      const versions = this.#versions.get(key) ?? []
      // A guard that wants nothing there says that nothing was.
      unfit ??= { key, known, shown: expected === 0 ? undefined : known, revision, versions, observer: operation }
    })
    const fits = unfit === undefined
    if (fits === (result?.ok ?? true) || this.mismatch !== undefined) return
    this.#fault(`A guard was ${fits ? 'refused that fits' : 'passed that does not fit'}: ${describe(operation)}`)
    this.mismatch = unfit
  }

  #compareRange(operation: OperationOf<'range'>, revision: Revision): void {
    const { start, end = `${start}\0`, limit = 0 } = operation.argument
    const result = operation.result as NonNullable<typeof operation.result>
    const known = [...this.#state.values()].filter(({ key }) => key >= start && key < end).sort(byKey)
    const wanted = limit > 0 ? known.slice(0, limit) : known
    const keys = new Set([...wanted, ...result.items].map(({ key }) => key))
    const shown = new Map(result.items.map((item) => [item.key, item]))
    for (const key of keys) {
      const expected = wanted.find((item) => item.key === key)
      this.#compareItem({ key, known: expected, shown: shown.get(key), revision }, operation)
    }
    if (this.mismatch !== undefined) return
    if (result.items.some((item, at) => item.key !== wanted[at]?.key)) {
      this.#fault(`Keys are out of order: ${describe(operation)}`)
    }
    if (result.count !== known.length || result.more !== wanted.length < known.length) {
      this.#fault(`There were ${known.length} keys, not ${result.count}: ${describe(operation)}`)
    }
  }

  #compareItem(
    { key, known, shown, revision }: Pick<Mismatch, 'key' | 'known' | 'shown' | 'revision'>,
    observer: Observation,
  ): void {
    const versions = this.#versions.get(key) ?? []
    const last = versions.at(-1)
    if (isSame(known, shown)) {
      if (known !== undefined && last !== undefined) last.seenAt = Math.max(revision, last.seenAt)
      return
    }
    this.mismatch ??= { key, known, shown, revision, versions, observer }
    if (observer.method === 'event') return
    this.#fault(
      `At revision ${revision} there was ${show(known)}, not ${show(shown)}: ${describe(observer satisfies Answer)}`,
    )
  }

  #fault(detail: string): void {
    this.violations.push({ rule: 'linearizable', detail })
  }
}

export function isSame(a: Item | undefined, b: Item | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.key === b.key && a.value === b.value && a.create === b.create && a.mod === b.mod && a.lease === b.lease
}

function byKey(a: Item, b: Item): number {
  return a.key < b.key ? -1 : 1
}
