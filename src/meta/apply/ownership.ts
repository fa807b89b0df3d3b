/**
 * Computes field ownership after updates and applies. An update takes every changed field from its owners. An apply
 * conflicts with other managers on changed fields, unless it is forced. Pure.
 */
import { shouldYield, type Steps } from '#lib/time-slicing.ts'

import type { ApplyKind, Conflict, Managers, Owned, VersionedValue } from './apply-kind.ts'
import type { TypeRef } from './atom.ts'
import { type Comparison, compareInSteps, NO_CHANGES } from './compare.ts'
import { equalInSteps } from './equal.ts'
import { filterFields } from './field-filter.ts'
import { difference, EMPTY_SET, type FieldSet, intersection, isEmptySet, union } from './field-set.ts'
import { mergeInSteps } from './merge.ts'
import { prune } from './prune.ts'
import { reconcileFields } from './reconcile.ts'
import { fieldSetInSteps } from './walk.ts'

export type OwnershipResult =
  | { readonly ok: true; readonly value: unknown; readonly managers: Managers; readonly changed: boolean }
  | { readonly ok: false; readonly conflicts: readonly Conflict[] }

export interface UpdateRequest {
  readonly kind: ApplyKind
  /** In the version of `next`. */
  readonly live: VersionedValue
  readonly next: VersionedValue
  readonly managers: Managers
  readonly manager: string
}

/** The managers after an update to `next`: its manager owns all changed fields. Throws ItemFault. */
export function* updateOwnershipInSteps(request: UpdateRequest): Steps<Managers> {
  const { kind, next, manager } = request
  const managers = reconcileManagers(kind, request.managers)
  yield
  const { comparison, others } = yield* take({ ...request, managers })
  yield
  const result = new Map(release(others.managers, others.losses))
  const kept = difference(managers.get(manager)?.set ?? EMPTY_SET, comparison.removed)
  const set = filterFields(union(union(kept, comparison.modified), comparison.added), kind.filter?.(next.apiVersion))
  result.delete(manager)
  if (!isEmptySet(set)) result.set(manager, { set, apiVersion: next.apiVersion, applied: false })
  return result
}

export interface ApplyRequest extends Omit<UpdateRequest, 'next'> {
  readonly config: VersionedValue
  readonly force: boolean
}

/** `live` with `config` applied. `changed` is false if at most ownership changes. Throws ItemFault. */
export function* applyOwnership({
  kind,
  live,
  config,
  manager,
  force,
  ...request
}: ApplyRequest): Steps<OwnershipResult> {
  const { apiVersion } = config
  const type = requireType(kind, apiVersion)
  const managers = reconcileManagers(kind, request.managers)
  const last = managers.get(manager)
  yield
  const set = filterFields(yield* fieldSetInSteps(type, config.value), kind.filter?.(apiVersion))
  const all = new Map(managers).set(manager, { set, apiVersion, applied: true })
  yield
  const merged = { apiVersion, value: yield* mergeInSteps(type, live.value, config.value) }
  yield
  const isFirst = last === undefined || isEmptySet(last.set)
  const next = isFirst ? merged : yield* prune({ kind, merged, managers: all, last })
  yield
  const { conflicts, others } = yield* take({ kind, live, next, managers: all, manager })
  if (!force && conflicts.length > 0) return { ok: false, conflicts }
  yield
  const result = release(others.managers, others.losses)
  const changed = !(yield* equalInSteps(live.value, next.value))
  return { ok: true, value: next.value, managers: result, changed }
}

function reconcileManagers(kind: ApplyKind, managers: Managers): Managers {
  const result = new Map<string, Owned>()
  for (const [id, owned] of managers) {
    const type = kind.typeOf(owned.apiVersion)
    if (type === undefined) continue
    const set = reconcileFields(type, owned.set)
    result.set(id, set === owned.set ? owned : { ...owned, set })
  }
  return result
}

interface OwnershipChange {
  /** In the version of the request. */
  readonly comparison: Comparison
  /** The added or modified fields that other managers own. */
  readonly conflicts: readonly Conflict[]
  readonly others: {
    /** All managers except those with a removed version. */
    readonly managers: Managers
    /** The conflicts, and the removed fields. */
    readonly losses: readonly Conflict[]
  }
}

interface Changes extends Comparison {
  /** All added or modified fields, computed once for all managers. */
  readonly written: FieldSet
}

const NOTHING_WRITTEN: Changes = { ...NO_CHANGES, written: EMPTY_SET }

/** The fields that each manager loses between `live` and `next`, in the version it wrote. */
function* take({ kind, live, next, managers, manager }: UpdateRequest): Steps<OwnershipChange> {
  const comparisons = new Map<string, Changes | undefined>()
  const compareIn = function* (apiVersion: string): Steps<Changes | undefined> {
    if (!comparisons.has(apiVersion)) {
      const found = yield* compareVersions(kind, [live, next], apiVersion)
      comparisons.set(apiVersion, found && { ...found, written: union(found.modified, found.added) })
      yield
    }
    return comparisons.get(apiVersion)
  }
  const kept = new Map<string, Owned>()
  const conflicts: Conflict[] = []
  const removed: Conflict[] = []
  for (const [name, owned] of managers) {
    const changes = name === manager ? NOTHING_WRITTEN : yield* compareIn(owned.apiVersion)
    if (shouldYield()) yield
    if (changes === undefined) continue
    kept.set(name, owned)
    const lost = intersection(owned.set, changes.written)
    if (!isEmptySet(lost)) conflicts.push({ manager: name, fields: lost })
    if (!isEmptySet(changes.removed)) removed.push({ manager: name, fields: changes.removed })
  }
  const comparison = (yield* compareIn(next.apiVersion)) ?? NO_CHANGES
  return { comparison, conflicts, others: { managers: kept, losses: [...conflicts, ...removed] } }
}

function* compareVersions(
  kind: ApplyKind,
  [live, next]: readonly [VersionedValue, VersionedValue],
  apiVersion: string,
): Steps<Comparison | undefined> {
  const type = kind.typeOf(apiVersion)
  if (type === undefined) return undefined
  const changes = yield* compareInSteps(
    type,
    kind.convert(live, apiVersion).value,
    kind.convert(next, apiVersion).value,
  )
  const filter = kind.filter?.(apiVersion)
  return {
    added: filterFields(changes.added, filter),
    modified: filterFields(changes.modified, filter),
    removed: filterFields(changes.removed, filter),
  }
}

/** Managers without the lost fields; those without any fields are dropped. */
function release(managers: Managers, losses: readonly Conflict[]): Managers {
  const result = new Map(managers)
  for (const { manager, fields } of losses) {
    const owned = result.get(manager)
    const set = owned === undefined ? EMPTY_SET : difference(owned.set, fields)
    if (owned !== undefined && set !== owned.set) result.set(manager, { ...owned, set })
  }
  for (const [name, { set }] of result) if (isEmptySet(set)) result.delete(name)
  return result
}

function requireType(kind: ApplyKind, apiVersion: string): TypeRef {
  const type = kind.typeOf(apiVersion)
  if (type === undefined) throw new TypeError(`There is no schema for version "${apiVersion}"`)
  return type
}
