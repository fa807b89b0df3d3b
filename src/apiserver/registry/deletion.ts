/**
 * How an object goes: at once, or after those who have a say in it (a kubelet that stops containers, finalizers) are
 * done. Pure: what is there and what was asked for in, what to do out.
 */
import type { Kind } from '#apis/kinds.ts'
import { addFinalizer, type KubeObject, type ObjectMeta, removeFinalizer } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import { conflictError } from '#meta/status-errors.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'

import type { Resource } from './resource.ts'

const ORPHAN = 'orphan'
const FOREGROUND = 'foregroundDeletion'

export type DeletionPlan =
  /** Nothing keeps it. */
  | { readonly action: 'remove' }
  /** It is marked first, for all to see: `object` is what it becomes. It goes at once when nothing keeps it. */
  | { readonly action: 'mark'; readonly object: KubeObject; readonly isLast: boolean }
  /** It is on its way already and nothing changes. */
  | { readonly action: 'wait' }

export interface DeletionRequest {
  /** A copy that may be changed. */
  readonly object: KubeObject
  readonly options: DeleteOptions
  /** What the kind says to the client's wish; undefined for kinds nobody has to stop. */
  readonly graceSeconds: ((asked: number | undefined) => number) | undefined
  /** The kind keeps it, whatever its finalizers. */
  readonly isHeld: boolean
  /** As of the resource. */
  readonly marksFirst?: Resource['marksFirst']
  readonly nowMs: number
}

export function planDeletion(request: DeletionRequest): DeletionPlan {
  const { object, options, graceSeconds, marksFirst, nowMs } = request
  const { metadata } = object
  const asked = options.gracePeriodSeconds === undefined ? undefined : soon(options.gracePeriodSeconds)
  if (metadata.deletionTimestamp !== undefined) return planAgain(request, asked)
  if (marksFirst !== 'without-policy') setPropagation(object, options)
  if (marksFirst !== undefined) {
    metadata.deletionTimestamp = timeOf(nowMs)
    return { action: 'mark', object, isLast: false }
  }
  const isKept = isKeptBack(request)
  if (graceSeconds === undefined && !isKept) return { action: 'remove' }
  const seconds = soon(graceSeconds?.(asked) ?? 0)
  begin(metadata, seconds, nowMs)
  return { action: 'mark', object, isLast: !isKept && seconds === 0 }
}

/** For an object that is on its way. */
function planAgain(request: DeletionRequest, asked: number | undefined): DeletionPlan {
  const { object, options, graceSeconds, isHeld } = request
  if (isHeld) return { action: 'wait' }
  const running = object.metadata.deletionGracePeriodSeconds ?? 0
  const isRunning = graceSeconds !== undefined && running > 0
  // Only what the client sends shortens the grace that is running, and nothing else changes meanwhile.
  if (isRunning && (asked === undefined || asked >= running)) return { action: 'wait' }
  const isChanged = setPropagation(object, options)
  const isKept = isKeptBack(request)
  if (isRunning && asked !== undefined) {
    shorten(object.metadata, running, asked)
    return { action: 'mark', object, isLast: !isKept && asked === 0 }
  }
  if (!isKept) return { action: 'remove' }
  return isChanged ? { action: 'mark', object, isLast: false } : { action: 'wait' }
}

function isKeptBack({ object: { metadata }, isHeld }: DeletionRequest): boolean {
  return isHeld || (metadata.finalizers?.length ?? 0) > 0
}

/** Less than nothing is a second. */
function soon(seconds: number): number {
  return seconds < 0 ? 1 : seconds
}

function begin(metadata: ObjectMeta, graceSeconds: number, nowMs: number): void {
  metadata.deletionTimestamp = timeOf(nowMs + graceSeconds * 1000)
  metadata.deletionGracePeriodSeconds = graceSeconds
  // Controllers that wait for their status to catch up must see that something changed.
  if (metadata.generation !== undefined) metadata.generation += 1
}

/** Counted from when the deletion began. */
function shorten(metadata: ObjectMeta, running: number, graceSeconds: number): void {
  const endMs = epochMsOf(metadata.deletionTimestamp ?? '')
  metadata.deletionTimestamp = timeOf(endMs - (running - graceSeconds) * 1000)
  metadata.deletionGracePeriodSeconds = graceSeconds
}

/** Turns the propagation policy into the finalizers that the garbage collector acts on. */
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

/** Throws StatusError 409 when it is another object than the one that was to be deleted. */
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

/** Deletion was only waiting for finalizers, and there are none left. */
export function isFinished({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.finalizers?.length ?? 0) === 0 &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0
  )
}
