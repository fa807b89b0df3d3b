/**
 * What every object shares: its metadata, its key, its owners and finalizers, and how whole objects are compared and
 * copied. Objects are plain JSON-shaped values here and everywhere; times are RFC 3339 text, quantities their text.
 */
import { pick, type Random } from '#lib/random.ts'
import type { Steps } from '#lib/slices.ts'

import { apiVersionOf, type GroupVersionKind } from './kind.ts'

export interface TypeMeta {
  kind?: string
  apiVersion?: string
}

export interface ObjectMeta {
  name?: string
  generateName?: string
  namespace?: string
  selfLink?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
  managedFields?: ManagedFieldsEntry[]
}

export interface ListMeta {
  selfLink?: string
  resourceVersion?: string
  continue?: string
  remainingItemCount?: number
  shardInfo?: { selector: string }
}

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
  blockOwnerDeletion?: boolean
}

/** A set of field paths, as server-side apply writes it: `{ 'f:spec': { 'f:replicas': {} } }`. */
export type FieldsV1 = Record<string, unknown>

export interface ManagedFieldsEntry {
  manager?: string
  operation?: 'Apply' | 'Update'
  apiVersion?: string
  time?: string
  fieldsType?: string
  fieldsV1?: FieldsV1
  subresource?: string
}

/** Any object of any kind. */
export interface KubeObject extends TypeMeta {
  metadata: ObjectMeta
}

export interface KubeList<T> extends TypeMeta {
  metadata: ListMeta
  items: T[]
}

interface Owned {
  readonly metadata: ObjectMeta
}

/** `namespace/name`, or the name alone for what lives in no namespace. Unique among the objects of one resource. */
export function objectKey({ metadata }: Owned): string {
  return keyOf(metadata.namespace, metadata.name ?? '')
}

/** The same from its parts. */
export function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`
}

/** Takes a key apart. Throws when it has more than one slash. */
export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/')
  if (slash !== key.lastIndexOf('/')) throw new Error(`unexpected key format: "${key}"`)
  return { namespace: slash < 0 ? '' : key.slice(0, slash), name: key.slice(slash + 1) }
}

/** The owner that manages this object; validation lets there be only one. */
export function controllerOf({ metadata }: Owned): OwnerReference | undefined {
  return metadata.ownerReferences?.find((owner) => owner.controller === true)
}

/** By uid: an owner deleted and made again under the same name is another one. */
export function isControlledBy(object: Owned, owner: Owned): boolean {
  const controller = controllerOf(object)
  return controller !== undefined && controller.uid === owner.metadata.uid
}

/** Whether `owner` is one of the owners, managing or not. */
export function isOwnedBy(object: Owned, owner: Owned): boolean {
  return object.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) ?? false
}

/** The reference that says: managed by `owner`, which must not go before this object in foreground deletion. */
export function controllerRef(owner: Owned, kind: GroupVersionKind): OwnerReference {
  return {
    apiVersion: apiVersionOf(kind),
    kind: kind.kind,
    name: owner.metadata.name ?? '',
    uid: owner.metadata.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  }
}

/** Deletion has been asked for; finalizers or a grace period keep the object. */
export function isBeingDeleted({ metadata }: Owned): boolean {
  return metadata.deletionTimestamp !== undefined
}

export function hasFinalizer({ metadata }: Owned, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false
}

/** Changes `object`; false when the finalizer was there already. */
export function addFinalizer(object: Owned, finalizer: string): boolean {
  if (hasFinalizer(object, finalizer)) return false
  object.metadata.finalizers = [...(object.metadata.finalizers ?? []), finalizer]
  return true
}

/** Changes `object`; false when there was nothing to remove. An empty list is removed as well. */
export function removeFinalizer(object: Owned, finalizer: string): boolean {
  if (!hasFinalizer(object, finalizer)) return false
  const rest = object.metadata.finalizers?.filter((other) => other !== finalizer) ?? []
  if (rest.length > 0) object.metadata.finalizers = rest
  else delete object.metadata.finalizers
  return true
}

/** Without vowels and look-alikes, so that chance makes neither words nor riddles. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const SUFFIX_LENGTH = 5
/** A name must fit a DNS label with its suffix. */
const MAX_BASE_LENGTH = 63 - SUFFIX_LENGTH

/** A name from `metadata.generateName`. Unlikely to be taken, not certain to be free. */
export function generateName(base: string, random: Random): string {
  return base.slice(0, MAX_BASE_LENGTH) + pick(random, SUFFIX_ALPHABET, SUFFIX_LENGTH)
}

/**
 * Equality of JSON-shaped values in which nothing, an empty map and an empty list are the same, as in upstream's
 * semantic equality. Unlike upstream's it sees shapes and no types: `1` and `1000m` differ, and so an optional struct
 * that is empty equals one that is absent.
 */
export function semanticEqual(a: unknown, b: unknown): boolean {
  // A list of what is still to compare instead of recursion: users decide how deep an object is.
  const pending: unknown[] = [a, b]
  while (pending.length > 0) {
    const right = pending.pop()
    const left = pending.pop()
    if (left !== right && !sameShallow(left, right, pending)) return false
  }
  return true
}

/** The same value in fresh memory, for JSON-shaped values only: nothing is shared but text and numbers. */
export function deepCopy<T>(value: T): T {
  if (!isObject(value)) return value
  const root = shallowCopy(value)
  // Copies whose fields are still those of the original.
  const pending = [root]
  for (let copy = pending.pop(); copy !== undefined; copy = pending.pop()) {
    if (Array.isArray(copy)) copyItems(copy, pending)
    else copyFields(copy as Record<string, unknown>, pending)
  }
  return root as T
}

/** Containers between two steps of a copy; a large one counts for as many as it has fields. */
const FIELDS_A_STEP = 2000

/** As `deepCopy`, in steps. */
export function* copyInSteps<T>(value: T): Steps<T> {
  if (!isObject(value)) return value
  const root = shallowCopy(value)
  const pending = [root]
  let fields = 0
  for (let copy = pending.pop(); copy !== undefined; copy = pending.pop()) {
    const before = pending.length
    if (Array.isArray(copy)) copyItems(copy, pending)
    else copyFields(copy as Record<string, unknown>, pending)
    fields += 1 + Math.max(0, pending.length - before)
    if (fields < FIELDS_A_STEP && !isLargeMap(copy)) continue
    yield
    fields = 0
  }
  return root as T
}

function isLargeMap(copy: object): boolean {
  let fields = 0
  for (const _ in copy) if (++fields > FIELDS_A_STEP) return true
  return false
}

type Fields = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Neither null nor an empty map or list is anything. */
function isNothing(value: unknown): boolean {
  if (value === null || value === undefined) return true
  if (typeof value !== 'object') return false
  return Array.isArray(value) ? value.length === 0 : Object.values(value).every((field) => field === undefined)
}

/** Whether two values may be the same; what is left to compare for that goes to `pending`, in pairs. */
function sameShallow(a: unknown, b: unknown, pending: unknown[]): boolean {
  if (isObject(a) && isObject(b) && Array.isArray(a) === Array.isArray(b)) {
    return Array.isArray(a) ? pairItems(a, b as unknown[], pending) : pairFields(a as Fields, b as Fields, pending)
  }
  return (isNothing(a) && isNothing(b)) || sameInteger(a, b)
}

/** An int64 too large for a number is a bigint; a small one may be either. */
function sameInteger(a: unknown, b: unknown): boolean {
  if (typeof a === 'number' && Number.isInteger(a)) return BigInt(a) === b
  return typeof b === 'number' && Number.isInteger(b) && BigInt(b) === a
}

function pairItems(a: readonly unknown[], b: readonly unknown[], pending: unknown[]): boolean {
  if (a.length !== b.length) return false
  for (let at = 0; at < a.length; at++) pending.push(a[at], b[at])
  return true
}

function pairFields(a: Fields, b: Fields, pending: unknown[]): boolean {
  for (const key of Object.keys(a)) {
    if (Object.hasOwn(b, key)) pending.push(a[key], b[key])
    else if (!isNothing(a[key])) return false
  }
  for (const key of Object.keys(b)) if (!Object.hasOwn(a, key) && !isNothing(b[key])) return false
  return true
}

/** Spread keeps the hidden class and copies a key named `__proto__` as a key, so that assigning to it is safe. */
function shallowCopy(value: object): object {
  return Array.isArray(value) ? value.slice() : { ...value }
}

function copyFields(copy: Record<string, unknown>, pending: object[]): void {
  for (const key of Object.keys(copy)) {
    const field = copy[key]
    if (isObject(field)) pending.push((copy[key] = shallowCopy(field)))
  }
}

function copyItems(copy: unknown[], pending: object[]): void {
  for (let at = 0; at < copy.length; at++) {
    const item = copy[at]
    if (isObject(item)) pending.push((copy[at] = shallowCopy(item)))
  }
}
