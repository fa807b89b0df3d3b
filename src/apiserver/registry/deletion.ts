/**
 * How an object goes: at once, or after those who have a say in it (a kubelet that stops containers, finalizers) are
 * done. Pure: what is there and what was asked for in, what to do out.
 */
import { addFinalizer, type KubeObject, type ObjectMeta, removeFinalizer } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import { timeOf } from '#meta/time.ts'

const ORPHAN = 'orphan'
const FOREGROUND = 'foregroundDeletion'

export type DeletionPlan =
  /** Nothing keeps it. */
  | { readonly action: 'remove' }
  /** It stays, marked; `object` is what it becomes. */
  | { readonly action: 'mark'; readonly object: KubeObject }
  /** It is on its way already and nothing changes. */
  | { readonly action: 'wait' }

export interface DeletionRequest {
  /** A copy that may be changed. */
  readonly object: KubeObject
  readonly options: DeleteOptions
  /** What the kind asks for: 0 for kinds nobody has to stop. */
  readonly graceSeconds: number
  /** The kind keeps it, whatever its finalizers. */
  readonly isHeld: boolean
  readonly nowMs: number
}

export function planDeletion({ object, options, graceSeconds, isHeld, nowMs }: DeletionRequest): DeletionPlan {
  const { metadata } = object
  const finalizersChanged = setPropagation(object, options)
  const kept = isHeld || (metadata.finalizers?.length ?? 0) > 0
  if (metadata.deletionTimestamp !== undefined) {
    const shortened = shorten(metadata, graceSeconds, nowMs)
    if (!kept && (metadata.deletionGracePeriodSeconds ?? 0) === 0) return { action: 'remove' }
    return shortened || finalizersChanged ? { action: 'mark', object } : { action: 'wait' }
  }
  if (!kept && graceSeconds === 0) return { action: 'remove' }
  mark(metadata, graceSeconds, nowMs)
  // What the kind itself holds is nobody's to time.
  if (isHeld) delete metadata.deletionGracePeriodSeconds
  return { action: 'mark', object }
}

function mark(metadata: ObjectMeta, graceSeconds: number, nowMs: number): void {
  metadata.deletionTimestamp = timeOf(nowMs + graceSeconds * 1000)
  metadata.deletionGracePeriodSeconds = graceSeconds
  // Controllers that wait for their status to catch up must see that something changed.
  if (metadata.generation !== undefined) metadata.generation += 1
}

/** A shorter grace than the one running counts, a longer one does not. */
function shorten(metadata: ObjectMeta, graceSeconds: number, nowMs: number): boolean {
  const running = metadata.deletionGracePeriodSeconds ?? 0
  if (graceSeconds >= running) return false
  metadata.deletionTimestamp = timeOf(nowMs + graceSeconds * 1000)
  metadata.deletionGracePeriodSeconds = graceSeconds
  return true
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
