/**
 * The parts that all API objects have: metadata, keys, owners and finalizers, with comparison and copying. Objects are
 * plain JSON values; times and quantities are text.
 */
import { type JsonObject, type JsonValue, setMember } from '#lib/json/value.ts'
import { pick, type Random } from '#lib/random.ts'
import type { Steps } from '#lib/time-slicing.ts'

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

/** A set of field paths in server-side apply's form: `{ 'f:spec': { 'f:replicas': {} } }`. */
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

/** An object of any kind. */
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

/** `namespace/name`, or the name of a cluster-scoped object. Unique within one resource. */
export function objectKey({ metadata }: Owned): string {
  return keyOf(metadata.namespace, metadata.name ?? '')
}

/** The same from its parts. */
export function keyOf(namespace: string | undefined, name: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`
}

/** Splits a key. Throws for more than one slash. */
export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/')
  if (slash !== key.lastIndexOf('/')) throw new Error(`unexpected key format: "${key}"`)
  return { namespace: slash < 0 ? '' : key.slice(0, slash), name: key.slice(slash + 1) }
}

/** The controller of this object; validation allows only one. */
export function controllerOf({ metadata }: Owned): OwnerReference | undefined {
  return metadata.ownerReferences?.find((owner) => owner.controller === true)
}

/** By uid: a recreated owner with the same name is another one. */
export function isControlledBy(object: Owned, owner: Owned): boolean {
  const controller = controllerOf(object)
  return controller !== undefined && controller.uid === owner.metadata.uid
}

/** True if `owner` is one of the owners, controlling or not. */
export function isOwnedBy(object: Owned, owner: Owned): boolean {
  return object.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) ?? false
}

/** The controller reference, which blocks foreground deletion of `owner`. */
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

/** The object is being deleted; finalizers or a grace period keep it. */
export function isBeingDeleted({ metadata }: Owned): boolean {
  return metadata.deletionTimestamp !== undefined
}

export function hasFinalizer({ metadata }: Owned, finalizer: string): boolean {
  return metadata.finalizers?.includes(finalizer) ?? false
}

/** Changes `object`; returns false if the finalizer exists. */
export function addFinalizer(object: Owned, finalizer: string): boolean {
  if (hasFinalizer(object, finalizer)) return false
  object.metadata.finalizers = [...(object.metadata.finalizers ?? []), finalizer]
  return true
}

/** Changes `object`; returns false if there is nothing to remove. An empty list is removed as well. */
export function removeFinalizer(object: Owned, finalizer: string): boolean {
  if (!hasFinalizer(object, finalizer)) return false
  const rest = object.metadata.finalizers?.filter((other) => other !== finalizer) ?? []
  if (rest.length > 0) object.metadata.finalizers = rest
  else delete object.metadata.finalizers
  return true
}

/** Without vowels and similar characters, to avoid words and confusion. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789'
const SUFFIX_LENGTH = 5
/** A name with its suffix must fit into a DNS label. */
const MAX_BASE_LENGTH = 63 - SUFFIX_LENGTH

/** A name from `metadata.generateName`. Probably, but not certainly, free. */
export function generateName(base: string, random: Random): string {
  return base.slice(0, MAX_BASE_LENGTH) + pick(random, SUFFIX_ALPHABET, SUFFIX_LENGTH)
}

/**
 * Equality of JSON values that treats absent, empty map and empty list as equal, like upstream's semantic equality.
 * Unlike upstream it has no types: `1` and `1000m` differ, and an empty optional struct equals an absent one.
 */
export function semanticEqual(a: unknown, b: unknown): boolean {
  // An explicit stack instead of recursion, because users control the depth of an object.
  const pending: unknown[] = [a, b]
  while (pending.length > 0) {
    const right = pending.pop()
    const left = pending.pop()
    if (left !== right && !sameShallow(left, right, pending)) return false
  }
  return true
}

/** A copy of a JSON value that shares nothing but text and numbers. */
export function deepCopy<T>(value: T): T {
  if (!isObject(value)) return value
  const root = shallowCopy(value)
  // Copies whose fields still refer to the original.
  const pending = [root]
  for (let copy = pending.pop(); copy !== undefined; copy = pending.pop()) {
    if (Array.isArray(copy)) copyItems(copy, pending)
    else copyFields(copy as Record<string, unknown>, pending)
  }
  return root as T
}

/** The number of fields and items that one step copies. */
const FIELDS_PER_STEP = 2000
const NO_KEYS: readonly string[] = []

/** Like `deepCopy`, in steps: also one map of a hundred thousand keys is copied in many. */
export function* copyInSteps<T>(value: T): Steps<T> {
  const root = [value]
  const pending: object[] = [root]
  let copied = 0
  for (let copy = pending.pop(); copy !== undefined; copy = pending.pop()) {
    for (const key of Array.isArray(copy) ? copy.keys() : Object.keys(copy)) {
      if (++copied % FIELDS_PER_STEP === 0) yield
      const field: unknown = Reflect.get(copy, key)
      if (!isObject(field)) continue
      const keys = Array.isArray(field) ? NO_KEYS : Object.keys(field)
      const inner = keys.length > FIELDS_PER_STEP ? yield* copyMap(field as JsonObject, keys) : shallowCopy(field)
      Reflect.set(copy, key, inner)
      pending.push(inner)
    }
  }
  return root[0] as T
}

/** A shallow copy. Spread would copy a large map in one step. */
function* copyMap(map: JsonObject, keys: readonly string[]): Steps<object> {
  const copy: JsonObject = {}
  for (let at = 0; at < keys.length; at++) {
    if (at % FIELDS_PER_STEP === 0) yield
    const key = keys[at] as string
    setMember(copy, key, map[key] as JsonValue)
  }
  return copy
}

type Fields = Readonly<Record<string, unknown>>

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Null, an empty map and an empty list count as absent. */
function isNothing(value: unknown): boolean {
  if (value === null || value === undefined) return true
  if (typeof value !== 'object') return false
  return Array.isArray(value) ? value.length === 0 : Object.values(value).every((field) => field === undefined)
}

/** Compares two values shallowly; pairs that remain to be compared go to `pending`. */
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

/** Spread keeps the hidden class and copies a key named `__proto__` as an own key, so that assigning to it is safe. */
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
