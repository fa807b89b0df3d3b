/**
 * Removes fields that the applier owned and no longer applies, unless another manager owns them. Managers own fields
 * in their own version, so pruning runs once for each version.
 */
import type { Steps } from '#lib/time-slicing.ts'

import type { ApplyKind, Managers, Owned, VersionedValue } from './apply-kind.ts'
import type { TypeRef } from './atom.ts'
import { difference, EMPTY_SET, type FieldSet, intersection, union } from './field-set.ts'
import { fieldSetInSteps, removeFields, withNamedFields } from './walk.ts'

export interface PruneRequest {
  readonly kind: ApplyKind
  readonly merged: VersionedValue
  /** With the applier's new fields. */
  readonly managers: Managers
  /** The applier's previous fields. */
  readonly last: Owned
}

export function* prune({ kind, merged, managers, last }: PruneRequest): Steps<VersionedValue> {
  const type = kind.typeOf(last.apiVersion)
  // The field names of a removed version are unknown, so nothing is removed for it.
  if (type === undefined) return merged
  const all = kind.convert(merged, last.apiVersion)
  const cut: VersionedValue = { ...all, value: yield* removeFields(type, all.value, withNamedFields(type, last.set)) }
  yield
  const kept = yield* addBackOwned(kind, all, cut, managers)
  yield
  const result = yield* addBackDangling(type, all, kind.convert(kept, last.apiVersion), last.set)
  return kind.convert(result, merged.apiVersion)
}

/** Restores parts of `all` that `cut` lacks and that a manager owns. */
function* addBackOwned(
  kind: ApplyKind,
  all: VersionedValue,
  cut: VersionedValue,
  managers: Managers,
): Steps<VersionedValue> {
  const byVersion = Map.groupBy(managers.values(), ({ apiVersion }) => apiVersion)
  // The version of the pruning comes first: conversion to another may need fields that are restored here.
  const versions = [all.apiVersion, ...[...byVersion.keys()].filter((version) => version !== all.apiVersion)]
  let [whole, pruned] = [all, cut]
  for (const version of versions) {
    const type = kind.typeOf(version)
    const owners = byVersion.get(version)
    if (type === undefined || owners === undefined) continue
    whole = kind.convert(whole, version)
    pruned = kind.convert(pruned, version)
    const owned = owners.reduce((sum, { set }) => union(sum, set), EMPTY_SET)
    const stays = union(yield* namedFieldsOf(type, pruned.value), withNamedFields(type, owned))
    yield
    const goes = difference(yield* namedFieldsOf(type, whole.value), stays)
    yield
    pruned = { ...whole, value: yield* removeFields(type, whole.value, goes) }
  }
  return pruned
}

/**
 * Restores fields that pruning removed although the applier never owned them, such as a list item with fields of
 * others.
 */
function* addBackDangling(
  type: TypeRef,
  all: VersionedValue,
  cut: VersionedValue,
  last: FieldSet,
): Steps<VersionedValue> {
  const before = yield* namedFieldsOf(type, all.value)
  yield
  const lost = difference(before, yield* namedFieldsOf(type, cut.value))
  yield
  return { ...all, value: yield* removeFields(type, all.value, intersection(lost, withNamedFields(type, last))) }
}

function* namedFieldsOf(type: TypeRef, value: unknown): Steps<FieldSet> {
  const set = yield* fieldSetInSteps(type, value)
  yield
  return withNamedFields(type, set)
}
