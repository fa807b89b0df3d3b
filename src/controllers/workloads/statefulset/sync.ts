/**
 * One sync of a StatefulSet: creates, updates or deletes the next pod. With OrderedReady, each pod waits for the
 * previous one.
 */
import type { StatefulSet } from '#apis/apps/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import { scaledValue } from '#meta/int-or-string.ts'
import { isBeingDeleted, objectKey } from '#meta/object.ts'
import { isAlreadyExists } from '#meta/status.ts'
import { isTerminal } from '#model/pods.ts'

import type { ControllerContext } from '../../controller.ts'
import { messageOf } from '../../pod-creation.ts'
import { claimsNeedOwners, createClaims, hasStaleClaim, updateClaimOwners } from './claims.ts'
import {
  corrected,
  isCreated,
  isOrdered,
  isRunningAndAvailable,
  isUnavailable,
  ordinalOf,
  partitionOf,
  replicasOf,
  revisionOf,
} from './identity.ts'

export interface SyncContext {
  readonly set: StatefulSet
  readonly context: ControllerContext
  /** One for each ordinal, in order; missing ones are drafts. */
  readonly replicas: readonly Pod[]
  /** Pods beyond the range, the highest ordinal first. */
  readonly condemned: readonly Pod[]
  readonly updateRevision: string
  readonly nowMs: number
}

/** Returns the number of pods deleted for the rolling update. */
export async function syncPods(sync: SyncContext): Promise<number> {
  const { set, replicas, condemned, context, nowMs } = sync
  if (await forAll(sync, replicas, (pod) => syncReplica(sync, pod))) return 0
  for (const pod of condemned) {
    if (claimsNeedOwners(set, pod, context)) await updateClaimOwners(set, pod, context)
  }
  const sick = [...replicas, ...condemned.toReversed()].find((pod) => isUnavailable(set, pod, nowMs))
  if (await forAll(sync, condemned, (pod) => drop(sync, pod, sick))) return 0
  return set.spec.updateStrategy.type === 'OnDelete' ? 0 : update(sync)
}

/** Returns whether the sync ends here: a write was made, or something must be awaited. */
type PodStep = (pod: Pod) => Promise<boolean>

/** In order until a step ends the sync; with Parallel, in batches of 1, 2, 4, …. */
async function forAll({ set }: SyncContext, pods: readonly Pod[], step: PodStep): Promise<boolean> {
  if (isOrdered(set)) {
    for (const pod of pods) if (await step(pod)) return true
    return false
  }
  for (let at = 0, batch = 1; at < pods.length; at += batch, batch = Math.min(batch * 2, 500)) {
    const results = await Promise.allSettled(pods.slice(at, at + batch).map(step))
    const failed = results.find((result) => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }
  return false
}

async function syncReplica(sync: SyncContext, pod: Pod): Promise<boolean> {
  const { set, context, nowMs } = sync
  const ordered = isOrdered(set)
  if (isTerminal(pod)) {
    if (!isBeingDeleted(pod)) await remove(sync, pod)
    return true
  }
  if (!isCreated(pod)) {
    if (hasStaleClaim(set, pod, context)) return true
    await create(sync, pod)
    return ordered
  }
  if (pod.status.phase === 'Pending') await createClaimsOf(sync, pod)
  if (ordered && (isBeingDeleted(pod) || !isRunningAndAvailable(set, pod, nowMs))) return true
  await repairPod(sync, pod)
  return false
}

async function drop(sync: SyncContext, pod: Pod, sick: Pod | undefined): Promise<boolean> {
  const { set, nowMs } = sync
  const ordered = isOrdered(set)
  if (isBeingDeleted(pod)) return ordered
  // A pod with a lower ordinal must recover first.
  if (ordered && pod !== sick && !isRunningAndAvailable(set, pod, nowMs)) return true
  await remove(sync, pod)
  return true
}

/** Deletes outdated pods from the highest ordinal down, within maxUnavailable. */
async function update(sync: SyncContext): Promise<number> {
  const { set, replicas, updateRevision, nowMs } = sync
  const { rollingUpdate } = set.spec.updateStrategy
  const isOld = (pod: Pod): boolean => revisionOf(pod) !== updateRevision && !isBeingDeleted(pod)
  const candidates = replicas.slice(partitionOf(set)).toReversed()
  if (rollingUpdate?.maxUnavailable === undefined) {
    const next = candidates.find((pod) => isOld(pod) || isUnavailable(set, pod, nowMs))
    if (next === undefined || !isOld(next)) return 0
    await remove(sync, next)
    return 1
  }
  const most = Math.max(1, scaledValue(rollingUpdate.maxUnavailable, replicasOf(set), 'down'))
  const missing = replicas.filter((pod) => isUnavailable(set, pod, nowMs)).length
  const chosen = candidates.filter(isOld).slice(0, Math.max(0, most - missing))
  for (const pod of chosen) await remove(sync, pod)
  return chosen.length
}

function recordEvent({ set, context }: SyncContext, verb: string, { metadata }: Pod, error?: unknown): void {
  const about = `${verb} Pod ${metadata.name} in StatefulSet ${set.metadata.name}`
  if (error === undefined) {
    context.event(set, { type: 'Normal', reason: `Successful${verb}`, message: `${about} successful` })
  } else {
    const message = `${about} failed error: ${messageOf(error)}`
    context.event(set, { type: 'Warning', reason: `Failed${verb}`, message })
  }
}

/** Runs the work and records its outcome as an event. Rethrows. */
async function recordOutcome(sync: SyncContext, verb: string, pod: Pod, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!isAlreadyExists(error)) recordEvent(sync, verb, pod, error)
    throw error
  }
}

async function create(sync: SyncContext, pod: Pod): Promise<void> {
  const { set, context } = sync
  const { client, signal, expectations } = context
  await recordOutcome(sync, 'Create', pod, async () => {
    await createClaims(set, pod, context)
    const { status: _, ...draft } = pod
    const made = await expectations.create(objectKey(set), 1, () => client.create(Pods, draft, { signal }))
    if ('error' in made) throw made.error
  })
  await recordOutcome(sync, 'Update', pod, () => updateClaimOwners(set, pod, context))
  recordEvent(sync, 'Create', pod)
}

async function createClaimsOf(sync: SyncContext, pod: Pod): Promise<void> {
  const { set, context } = sync
  await createClaims(set, pod, context)
  await recordOutcome(sync, 'Update', pod, () => updateClaimOwners(set, pod, context))
}

async function remove(sync: SyncContext, pod: Pod): Promise<void> {
  const { set, context } = sync
  const { client, signal, expectations } = context
  const { namespace, name = '', uid } = pod.metadata
  // Another pod of this name may exist by now.
  const preconditions = uid === undefined ? {} : { preconditions: { uid } }
  await recordOutcome(sync, 'Delete', pod, async () => {
    const gone = await expectations.delete(objectKey(set), [pod], () =>
      client.delete(Pods, { namespace, name }, { signal, ...preconditions }),
    )
    if ('error' in gone) throw gone.error
  })
  recordEvent(sync, 'Delete', pod)
}

/** Restores the pod's identity and the owners of its claims. */
async function repairPod(sync: SyncContext, pod: Pod): Promise<void> {
  const { set, context } = sync
  const { client, signal } = context
  const fixed = ordinalOf(set, pod) < 0 ? undefined : corrected(set, pod)
  const hasDrifted = claimsNeedOwners(set, pod, context)
  if (fixed === undefined && !hasDrifted) return
  await recordOutcome(sync, 'Update', pod, async () => {
    if (fixed !== undefined) await createClaims(set, pod, context)
    if (hasDrifted) await updateClaimOwners(set, pod, context)
    await client.update(Pods, fixed ?? pod, { signal })
  })
  recordEvent(sync, 'Update', pod)
}
