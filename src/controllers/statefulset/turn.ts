/** One look at a StatefulSet: which pod is made, mended or taken away next. In order, each waits for the one before. */
import type { StatefulSet } from '#apis/apps/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import { scaledValue } from '#meta/int-or-string.ts'
import { isBeingDeleted, objectKey } from '#meta/object.ts'
import { isAlreadyExists } from '#meta/status.ts'
import { isTerminal } from '#model/pods.ts'

import type { ControllerContext } from '../controller.ts'
import { messageOf } from '../pod-creation.ts'
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

export interface Turn {
  readonly set: StatefulSet
  readonly context: ControllerContext
  /** One for each ordinal, in order; those that are not there yet are as they are to be made. */
  readonly replicas: readonly Pod[]
  /** Those beyond the range, the highest ordinal first. */
  readonly condemned: readonly Pod[]
  readonly updateRevision: string
  readonly nowMs: number
}

/** How many pods were taken away because they are of an old revision. */
export async function take(turn: Turn): Promise<number> {
  const { set, replicas, condemned, context, nowMs } = turn
  if (await forAll(turn, replicas, (pod) => keep(turn, pod))) return 0
  for (const pod of condemned) {
    if (claimsNeedOwners(set, pod, context)) await updateClaimOwners(set, pod, context)
  }
  const sick = [...replicas, ...condemned.toReversed()].find((pod) => isUnavailable(set, pod, nowMs))
  if (await forAll(turn, condemned, (pod) => drop(turn, pod, sick))) return 0
  return set.spec.updateStrategy.type === 'OnDelete' ? 0 : update(turn)
}

/** Whether the turn is over: something was done, or has to be waited for. */
type Step = (pod: Pod) => Promise<boolean>

/** In order until one says so; otherwise all of them, 1, then 2, then 4, … at once. */
async function forAll({ set }: Turn, pods: readonly Pod[], step: Step): Promise<boolean> {
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

async function keep(turn: Turn, pod: Pod): Promise<boolean> {
  const { set, context, nowMs } = turn
  const ordered = isOrdered(set)
  if (isTerminal(pod)) {
    if (!isBeingDeleted(pod)) await remove(turn, pod)
    return true
  }
  if (!isCreated(pod)) {
    if (hasStaleClaim(set, pod, context)) return true
    await create(turn, pod)
    return ordered
  }
  if (pod.status.phase === 'Pending') await createClaimsOf(turn, pod)
  if (ordered && (isBeingDeleted(pod) || !isRunningAndAvailable(set, pod, nowMs))) return true
  await mend(turn, pod)
  return false
}

async function drop(turn: Turn, pod: Pod, sick: Pod | undefined): Promise<boolean> {
  const { set, nowMs } = turn
  const ordered = isOrdered(set)
  if (isBeingDeleted(pod)) return ordered
  // Somebody with a lower ordinal has to recover first.
  if (ordered && pod !== sick && !isRunningAndAvailable(set, pod, nowMs)) return true
  await remove(turn, pod)
  return true
}

/** Takes away pods of an old revision, from the highest ordinal down, as many as may be missing. */
async function update(turn: Turn): Promise<number> {
  const { set, replicas, updateRevision, nowMs } = turn
  const { rollingUpdate } = set.spec.updateStrategy
  const isOld = (pod: Pod): boolean => revisionOf(pod) !== updateRevision && !isBeingDeleted(pod)
  const candidates = replicas.slice(partitionOf(set)).toReversed()
  if (rollingUpdate?.maxUnavailable === undefined) {
    const next = candidates.find((pod) => isOld(pod) || isUnavailable(set, pod, nowMs))
    if (next === undefined || !isOld(next)) return 0
    await remove(turn, next)
    return 1
  }
  const most = Math.max(1, scaledValue(rollingUpdate.maxUnavailable, replicasOf(set), 'down'))
  const missing = replicas.filter((pod) => isUnavailable(set, pod, nowMs)).length
  const chosen = candidates.filter(isOld).slice(0, Math.max(0, most - missing))
  for (const pod of chosen) await remove(turn, pod)
  return chosen.length
}

function say({ set, context }: Turn, verb: string, { metadata }: Pod, error?: unknown): void {
  const about = `${verb} Pod ${metadata.name} in StatefulSet ${set.metadata.name}`
  if (error === undefined) {
    context.event(set, { type: 'Normal', reason: `Successful${verb}`, message: `${about} successful` })
  } else {
    const message = `${about} failed error: ${messageOf(error)}`
    context.event(set, { type: 'Warning', reason: `Failed${verb}`, message })
  }
}

/** Says what became of it, and fails as it failed. */
async function telling(turn: Turn, verb: string, pod: Pod, work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!isAlreadyExists(error)) say(turn, verb, pod, error)
    throw error
  }
}

async function create(turn: Turn, pod: Pod): Promise<void> {
  const { set, context } = turn
  const { client, signal, expectations } = context
  await telling(turn, 'Create', pod, async () => {
    await createClaims(set, pod, context)
    const { status: _, ...draft } = pod
    const made = await expectations.create(objectKey(set), 1, () => client.create(Pods, draft, { signal }))
    if ('error' in made) throw made.error
  })
  await telling(turn, 'Update', pod, () => updateClaimOwners(set, pod, context))
  say(turn, 'Create', pod)
}

async function createClaimsOf(turn: Turn, pod: Pod): Promise<void> {
  const { set, context } = turn
  await createClaims(set, pod, context)
  await telling(turn, 'Update', pod, () => updateClaimOwners(set, pod, context))
}

async function remove(turn: Turn, pod: Pod): Promise<void> {
  const { set, context } = turn
  const { client, signal, expectations } = context
  const { namespace, name = '', uid } = pod.metadata
  // Another pod of this name may be there by now.
  const preconditions = uid === undefined ? {} : { preconditions: { uid } }
  await telling(turn, 'Delete', pod, async () => {
    const gone = await expectations.delete(objectKey(set), [pod], () =>
      client.delete(Pods, { namespace, name }, { signal, ...preconditions }),
    )
    if ('error' in gone) throw gone.error
  })
  say(turn, 'Delete', pod)
}

/** Puts right who it is and whom its claims belong to. */
async function mend(turn: Turn, pod: Pod): Promise<void> {
  const { set, context } = turn
  const { client, signal } = context
  const fixed = ordinalOf(set, pod) < 0 ? undefined : corrected(set, pod)
  const hasDrifted = claimsNeedOwners(set, pod, context)
  if (fixed === undefined && !hasDrifted) return
  await telling(turn, 'Update', pod, async () => {
    if (fixed !== undefined) await createClaims(set, pod, context)
    if (hasDrifted) await updateClaimOwners(set, pod, context)
    await client.update(Pods, fixed ?? pod, { signal })
  })
  say(turn, 'Update', pod)
}
