/**
 * What an apply gives up: fields the applier owned, applies no longer, and nobody else owns leave the object. Ownership
 * is in terms of the version each manager wrote, so this works in one version after the other.
 */
import type { Steps } from '#lib/slices.ts'

import type { ApplyKind, Managers, Owned, Versioned } from './apply-kind.ts'
import type { Typed } from './atom.ts'
import { difference, EMPTY_SET, type FieldSet, intersection, union } from './field-set.ts'
import { fieldSetInSteps, removeFields, withNamedFields } from './walk.ts'

export interface PruneRequest {
  readonly kind: ApplyKind
  readonly merged: Versioned
  /** With the applier's new fields. */
  readonly managers: Managers
  /** What the applier owned before. */
  readonly last: Owned
}

export function* prune({ kind, merged, managers, last }: PruneRequest): Steps<Versioned> {
  const type = kind.typeOf(last.apiVersion)
  // A version that is gone cannot say what its fields were called: nothing can be removed on its word.
  if (type === undefined) return merged
  const all = kind.convert(merged, last.apiVersion)
  const cut: Versioned = { ...all, value: yield* removeFields(type, all.value, withNamedFields(type, last.set)) }
  yield
  const kept = yield* addBackOwned(kind, all, cut, managers)
  yield
  const result = yield* addBackDangling(type, all, kind.convert(kept, last.apiVersion), last.set)
  return kind.convert(result, merged.apiVersion)
}

/** What `cut` lacks of `all` and somebody owns comes back. */
function* addBackOwned(kind: ApplyKind, all: Versioned, cut: Versioned, managers: Managers): Steps<Versioned> {
  const byVersion = Map.groupBy(managers.values(), ({ apiVersion }) => apiVersion)
  // The version pruned in comes first: converting to another may need fields that are added back here.
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

/** Whatever pruning took along that the applier never owned (a list item with fields of others) comes back. */
function* addBackDangling(type: Typed, all: Versioned, cut: Versioned, last: FieldSet): Steps<Versioned> {
  const before = yield* namedFieldsOf(type, all.value)
  yield
  const lost = difference(before, yield* namedFieldsOf(type, cut.value))
  yield
  return { ...all, value: yield* removeFields(type, all.value, intersection(lost, withNamedFields(type, last))) }
}

function* namedFieldsOf(type: Typed, value: unknown): Steps<FieldSet> {
  const set = yield* fieldSetInSteps(type, value)
  yield
  return withNamedFields(type, set)
}
