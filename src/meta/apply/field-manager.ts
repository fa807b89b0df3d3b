/**
 * The field manager: computes the new object and its `metadata.managedFields` for an update or apply.
 *
 * Ownership is computed after defaulting and before admission, so fields of plugins have no owner. The behaviour
 * follows apimachinery's managedfields and structured-merge-diff v6.3, as of v1.36.
 */
import { runAtOnce, type Steps } from '#lib/time-slicing.ts'

import { parseApiVersion } from '../kind.ts'
import type { KubeObject, ManagedFieldsEntry } from '../object.ts'
import type { StatusCause } from '../status.ts'
import { timeOf } from '../time.ts'
import type { ApplyKind, Managers, VersionedValue } from './apply-kind.ts'
import { ItemFault, type TypeRef } from './atom.ts'
import { reportConflicts } from './conflict.ts'
import { createdFields, emptyObject, NOT_OWNED } from './created-fields.ts'
import { difference, equalSets, isEmptySet, union } from './field-set.ts'
import { refreshLastApplied, withoutLastApplied } from './last-applied.ts'
import {
  capUpdaters,
  decodeManaged,
  encodeManagedInSteps,
  type ManagedState,
  type Manager,
  managerId,
  NOT_MANAGED,
} from './managed-fields.ts'
import { applyOwnership, type OwnershipResult, updateOwnershipInSteps } from './ownership.ts'
import { faultsText, validateInSteps, type ValidateOptions } from './validate.ts'

/** The owner of all fields before the first apply to an object without entries. */
const BEFORE_FIRST_APPLY = 'before-first-apply'

export interface FieldRequest {
  readonly kind: ApplyKind
  /**
   * The stored object, canonical and in the version of the request. Undefined if it does not exist, or if it has only
   * kind, apiVersion and empty metadata.
   */
  readonly live: KubeObject | undefined
  readonly manager: string
  /** Empty for the main resource. */
  readonly subresource: string
  readonly nowMs: number
  /** True if the caller yields between steps: then the fast path for new objects, which cannot yield, is not used. */
  readonly isSliced?: boolean
}

/** `next`, canonical, with its new managedFields. Never fails: untrackable objects are not tracked. */
export function trackUpdate(request: FieldRequest, next: KubeObject): KubeObject {
  return runAtOnce(trackUpdateInSteps(request, next))
}

export function* trackUpdateInSteps(request: FieldRequest, next: KubeObject): Steps<KubeObject> {
  const bare = withoutManaged(next)
  try {
    return withEntries(bare, yield* entriesAfter(request, bare, next.metadata.managedFields))
  } catch (error) {
    if (error instanceof ItemFault) return bare
    throw error
  }
}

/** Clients may send null, which the type of objects lacks. */
type SentEntries = readonly ManagedFieldsEntry[] | null | undefined

function* entriesAfter(request: FieldRequest, next: KubeObject, sent: SentEntries): Steps<ManagedFieldsEntry[]> {
  const { live } = request
  const created = isNone(live) && request.isSliced !== true ? trackCreate(request, next, sent) : undefined
  if (created !== undefined) return created
  const before = managedBefore(request, sent)
  yield
  // An update adds no entries to an object without any: they would cover only a part of it.
  if (before.managers.size === 0 && (live?.metadata.uid ?? '') !== '') return []
  const after = yield* trackChanges(request, before, next)
  yield
  return yield* encodeManagedInSteps(after)
}

/** The entries of a new object by the fast path; undefined if it does not apply. */
function trackCreate(
  { kind, manager, subresource, nowMs }: FieldRequest,
  next: KubeObject,
  sent: SentEntries,
): ManagedFieldsEntry[] | undefined {
  if (subresource !== '' || (sent !== undefined && sent !== null && !isReset(sent))) return undefined
  const { apiVersion = '' } = next
  const filter = kind.filter?.(apiVersion)
  const type = kind.typeOf(apiVersion)
  if (type === undefined || filter?.mode === 'include') return undefined
  const fieldsV1 = createdFields(type, next, filter?.fields)
  if (fieldsV1 === undefined) return []
  const time = timeOf(nowMs)
  return [{ manager: manager || 'unknown', operation: 'Update', apiVersion, time, fieldsType: 'FieldsV1', fieldsV1 }]
}

export type ApplyResult =
  | { readonly ok: true; readonly object: KubeObject }
  | { readonly ok: false; readonly message: string; readonly causes: readonly StatusCause[] }

/**
 * The configuration or the live object is invalid, or stored entries are unreadable. The message is upstream's, for a
 * 500 answer.
 */
export class TypedPatchError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'TypedPatchError'
  }
}

/**
 * The live object with `config` applied, not yet canonical: removed fields may be null, and decoding drops them.
 * `config` is the client's object, with kind and version of the request and without managedFields, as the caller has
 * checked. Throws TypedPatchError.
 */
export function applyConfig(request: FieldRequest, config: KubeObject, force: boolean): ApplyResult {
  return runAtOnce(applyInSteps(request, config, force))
}

/** The same in steps, each of which walks the whole object once. */
export function* applyInSteps(request: FieldRequest, config: KubeObject, force: boolean): Steps<ApplyResult> {
  const { kind, manager, subresource } = request
  const { apiVersion = '' } = config
  const live = isNone(request.live) ? emptyLike(kind, config) : request.live
  const managed = yield* managedForApply(request, live)
  yield
  const bare = withoutManaged(live)
  const type = kind.typeOf(apiVersion)
  yield* checkTyped(type, config, (what) => `failed to create typed patch object (${what})`)
  yield
  yield* checkTyped(type, bare, (what) => `failed to create typed live object (${what})`, { allowDuplicates: true })
  const id = idOf({ manager, operation: 'Apply', apiVersion, subresource })
  const applying = { kind, live: versioned(bare), config: versioned(config), managers: managed.managers, manager: id }
  const attempt = (forced: boolean): Steps<OwnershipResult> => comparing(applyOwnership({ ...applying, force: forced }))
  yield
  let result = yield* attempt(force)
  if (!result.ok) {
    const conflicts = withoutLastApplied({ kind, live: bare, manager, apiVersion }, result.conflicts)
    if (conflicts.length > 0) return { ok: false, ...reportConflicts(conflicts) }
    result = yield* attempt(true)
  }
  if (!result.ok) return { ok: false, ...reportConflicts(result.conflicts) }
  const times = new Map(managed.times)
  if (result.changed) times.set(id, timeOf(request.nowMs))
  yield
  const object = refreshLastApplied(manager, result.changed ? withMetadata(result.value) : bare, config)
  const entries = yield* encodeManagedInSteps({ managers: strip(result.managers, id), times })
  return { ok: true, object: withEntries(object, entries) }
}

function* comparing<T>(work: Steps<T>): Steps<T> {
  try {
    return yield* work
  } catch (cause) {
    if (!(cause instanceof ItemFault)) throw cause
    throw new TypedPatchError(`failed to compare objects: ${cause.message}`, { cause })
  }
}

/** The stored entries; fields from before the first apply get an owner, so that they can be removed later. */
function* managedForApply(request: FieldRequest, live: KubeObject): Steps<ManagedState> {
  let managed: ManagedState
  try {
    managed = decodeManaged(live.metadata.managedFields ?? [])
  } catch (cause) {
    throw new TypedPatchError(`failed to decode managed fields: ${(cause as Error).message}`, { cause })
  }
  if (managed.managers.size > 0) return managed
  const bare = withoutManaged(live)
  const doing = (what: string): string =>
    `failed to create manager for existing fields: failed to convert new object (${what}) to smd typed`
  yield* checkTyped(request.kind.typeOf(live.apiVersion ?? ''), bare, doing, { allowDuplicates: true })
  const first = { ...request, live: emptyLike(request.kind, live), manager: BEFORE_FIRST_APPLY }
  return yield* trackChanges(first, NOT_MANAGED, bare)
}

/** Throws for an invalid object; `doing` is the failed operation with upstream's name of the object. */
function* checkTyped(
  type: TypeRef | undefined,
  object: KubeObject,
  doing: (what: string) => string,
  options?: ValidateOptions,
): Steps<void> {
  const { apiVersion = '', kind = '', metadata } = object
  const { group, version } = parseApiVersion(apiVersion)
  const gvk = `${group}/${version}, Kind=${kind}`
  const faults =
    type === undefined ? [`no corresponding type for ${gvk}`] : yield* validateInSteps(type, object, options)
  if (faults.length === 0) return
  const { namespace = '', name = '' } = metadata
  throw new TypedPatchError(`${doing(`${namespace}/${name}; ${gvk}`)}: ${faultsText(faults)}`)
}

/** Ownership after the change from live to `next`, with the time of the manager that changed. */
function* trackChanges(request: FieldRequest, before: ManagedState, next: KubeObject): Steps<ManagedState> {
  const { kind, manager, subresource, nowMs } = request
  const { apiVersion = '' } = next
  const live = isNone(request.live) ? emptyLike(kind, next) : withoutManaged(request.live)
  // Computed under a temporary id first, so that the manager also loses fields like any other.
  const current = 'current-operation'
  const changing = { kind, live: versioned(live), next: versioned(next), managers: before.managers, manager: current }
  const managers = new Map(strip(yield* updateOwnershipInSteps(changing), current))
  yield
  const times = new Map(before.times)
  const taken = managers.get(current)
  managers.delete(current)
  if (taken !== undefined) {
    const id = idOf({ manager, operation: 'Update', apiVersion, subresource })
    const previous = managers.get(id)
    const set = previous === undefined ? taken.set : union(taken.set, previous.set)
    const had = before.managers.get(id)
    // A manager that writes the same fields again keeps its existing entry.
    managers.set(id, had !== undefined && equalSets(had.set, set) ? { ...taken, set: had.set } : { ...taken, set })
    times.set(id, timeOf(nowMs))
  }
  return capUpdaters({ managers, times })
}

function idOf(manager: Manager): string {
  return managerId({ ...manager, manager: manager.manager || 'unknown' })
}

/** Removes fields that never have an owner; only the manager of the request can have gained them. */
function strip(managers: Managers, id: string): Managers {
  const owned = managers.get(id)
  if (owned === undefined) return managers
  const result = new Map(managers)
  const set = difference(owned.set, NOT_OWNED)
  if (isEmptySet(set)) result.delete(id)
  else result.set(id, { ...owned, set })
  return result
}

/**
 * The initial entries of an update. Clients may edit them or, with an empty list or one empty entry, clear them;
 * omitting them changes nothing. Subresources always keep the stored ones.
 */
function managedBefore({ live, subresource }: FieldRequest, sent: SentEntries): ManagedState {
  const stored = (): ManagedState => decodeSafely(live?.metadata.managedFields)
  if (subresource !== '' || sent === undefined || sent === null) return stored()
  if (isReset(sent)) return NOT_MANAGED
  const decoded = decodeSafely(sent)
  return decoded.managers.size === 0 ? stored() : decoded
}

function isReset(entries: readonly ManagedFieldsEntry[]): boolean {
  return entries.length === 0 || (entries.length === 1 && Object.keys(entries[0] ?? {}).length === 0)
}

function decodeSafely(entries: readonly ManagedFieldsEntry[] | undefined): ManagedState {
  try {
    return decodeManaged(entries ?? [])
  } catch {
    // Unreadable entries count as none, so that an update does not fail.
    return NOT_MANAGED
  }
}

function withEntries(object: KubeObject, entries: ManagedFieldsEntry[]): KubeObject {
  if (entries.length === 0) return object
  return { ...object, metadata: { ...object.metadata, managedFields: entries } }
}

function withoutManaged(object: KubeObject): KubeObject {
  if (!Object.hasOwn(object.metadata, 'managedFields')) return object
  const { managedFields: _, ...metadata } = object.metadata
  return { ...object, metadata }
}

/** Even if all its metadata fields were removed. */
function withMetadata(value: unknown): KubeObject {
  const object = value as Omit<KubeObject, 'metadata'> & { readonly metadata?: KubeObject['metadata'] | null }
  return { ...object, metadata: object.metadata ?? {} }
}

/** True if there is no live object. */
function isNone(live: KubeObject | undefined): live is undefined {
  if (live === undefined) return true
  const names = Object.keys(live.metadata).length === 0 ? Object.keys(live) : undefined
  return names?.every((name) => name === 'apiVersion' || name === 'kind' || name === 'metadata') ?? false
}

function emptyLike(kind: ApplyKind, { apiVersion = '', kind: name }: KubeObject): KubeObject {
  return { ...emptyObject(kind.typeOf(apiVersion)), apiVersion, ...(name !== undefined && { kind: name }) }
}

function versioned(object: KubeObject): VersionedValue {
  return { apiVersion: object.apiVersion ?? '', value: object }
}
