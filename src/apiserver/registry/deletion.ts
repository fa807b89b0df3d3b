/** Plans a deletion: immediately, or after graceful termination and finalizers. Pure. */
import type { Kind } from '#apis/kinds.ts'
import { addFinalizer, type KubeObject, type ObjectMeta, removeFinalizer } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import { conflictError } from '#meta/status-errors.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'

import type { Resource } from './resource.ts'

const ORPHAN = 'orphan'
const FOREGROUND = 'foregroundDeletion'

export type DeletionPlan =
  /** Nothing blocks it: remove the object. */
  | { readonly action: 'remove' }
  /** Store the marked `object` first. With `isLast` it is removed right after. */
  | { readonly action: 'mark'; readonly object: KubeObject; readonly isLast: boolean }
  /** The deletion is already in progress and nothing changes. */
  | { readonly action: 'wait' }

export interface DeletionRequest {
  /** A copy that may be modified. */
  readonly object: KubeObject
  readonly options: DeleteOptions
  /** The kind's grace period for the requested one; undefined for kinds without graceful deletion. */
  readonly graceSeconds: ((requested: number | undefined) => number) | undefined
  /** True if the kind blocks the removal in addition to finalizers. */
  readonly isDeletionBlocked: boolean
  /** See the resource's member. */
  readonly marksFirst?: Resource['marksFirst']
  readonly nowMs: number
}

export function planDeletion(request: DeletionRequest): DeletionPlan {
  const { object, options, graceSeconds, marksFirst, nowMs } = request
  const { metadata } = object
  const requested = options.gracePeriodSeconds === undefined ? undefined : soon(options.gracePeriodSeconds)
  if (metadata.deletionTimestamp !== undefined) return planAgain(request, requested)
  if (marksFirst !== 'without-policy') setPropagation(object, options)
  if (marksFirst !== undefined) {
    metadata.deletionTimestamp = timeOf(nowMs)
    return { action: 'mark', object, isLast: false }
  }
  const isKept = isKeptBack(request)
  if (graceSeconds === undefined && !isKept) return { action: 'remove' }
  const seconds = soon(graceSeconds?.(requested) ?? 0)
  begin(metadata, seconds, nowMs)
  return { action: 'mark', object, isLast: !isKept && seconds === 0 }
}

/** For an object that is already being deleted. */
function planAgain(request: DeletionRequest, requested: number | undefined): DeletionPlan {
  const { object, options, graceSeconds, isDeletionBlocked } = request
  if (isDeletionBlocked) return { action: 'wait' }
  const running = object.metadata.deletionGracePeriodSeconds ?? 0
  const isRunning = graceSeconds !== undefined && running > 0
  // Only an explicit value shortens the running grace period, and nothing else changes meanwhile.
  if (isRunning && (requested === undefined || requested >= running)) return { action: 'wait' }
  const isChanged = setPropagation(object, options)
  const isKept = isKeptBack(request)
  if (isRunning && requested !== undefined) {
    shorten(object.metadata, running, requested)
    return { action: 'mark', object, isLast: !isKept && requested === 0 }
  }
  if (!isKept) return { action: 'remove' }
  return isChanged ? { action: 'mark', object, isLast: false } : { action: 'wait' }
}

function isKeptBack({ object: { metadata }, isDeletionBlocked }: DeletionRequest): boolean {
  return isDeletionBlocked || (metadata.finalizers?.length ?? 0) > 0
}

/** A negative value counts as one second. */
function soon(seconds: number): number {
  return seconds < 0 ? 1 : seconds
}

function begin(metadata: ObjectMeta, graceSeconds: number, nowMs: number): void {
  metadata.deletionTimestamp = timeOf(nowMs + graceSeconds * 1000)
  metadata.deletionGracePeriodSeconds = graceSeconds
  // Controllers that compare observedGeneration must see the change.
  if (metadata.generation !== undefined) metadata.generation += 1
}

/** Counted from the beginning of the deletion. */
function shorten(metadata: ObjectMeta, running: number, graceSeconds: number): void {
  const endMs = epochMsOf(metadata.deletionTimestamp ?? '')
  metadata.deletionTimestamp = timeOf(endMs - (running - graceSeconds) * 1000)
  metadata.deletionGracePeriodSeconds = graceSeconds
}

/** Turns the propagation policy into the finalizers of the garbage collector. */
function setPropagation(object: KubeObject, { propagationPolicy, orphanDependents }: DeleteOptions): boolean {
  const policy =
    propagationPolicy ?? (orphanDependents === undefined ? undefined : orphanDependents ? 'Orphan' : 'Background')
  if (policy === undefined) return false
  const before = object.metadata.finalizers?.join('\n') ?? ''
  if (policy !== 'Orphan') removeFinalizer(object, ORPHAN)
  if (policy !== 'Foreground') removeFinalizer(object, FOREGROUND)
  if (policy === 'Orphan') addFinalizer(object, ORPHAN)
  if (policy === 'Foreground') addFinalizer(object, FOREGROUND)
  return before !== (object.metadata.finalizers?.join('\n') ?? '')
}

/** Throws StatusError 409 if uid or version differ from the preconditions. */
export function checkPreconditions(
  { kind: { group, kind, plural }, marksFirst }: { kind: Kind; marksFirst?: Resource['marksFirst'] },
  { metadata }: KubeObject,
  { preconditions }: DeleteOptions,
): void {
  for (const [field, label] of [
    ['uid', 'UID'],
    ['resourceVersion', 'ResourceVersion'],
  ] as const) {
    const wanted = preconditions?.[field]
    const there = metadata[field] ?? ''
    if (wanted === undefined || wanted === there) continue
    if (marksFirst !== undefined) {
      const why = `Precondition failed: ${label} in precondition: ${wanted}, ${label} in object meta: ${there}`
      throw conflictError({ group, resource: plural }, metadata.name ?? '', why)
    }
    const why = `the ${label} in the precondition (${wanted}) does not match the ${label} in record (${there}). The object might have been ${field === 'uid' ? 'deleted and then recreated' : 'modified'}`
    throw conflictError({ group, resource: kind }, metadata.name ?? '', why)
  }
}

/** True if the deletion waited only for finalizers, and none is left. */
export function isFinished({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.finalizers?.length ?? 0) === 0 &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0
  )
}
