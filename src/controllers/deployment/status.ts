/** What a Deployment says of itself: counts, whether enough of it is there, and how a rollout goes. Pure. */
import type { Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet } from '#apis/apps/v1.ts'
import { findCondition } from '#meta/conditions.ts'
import { semanticEqual } from '#meta/object.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'

import { replicasOf, sum, tolerances } from './sizes.ts'

const NO_DEADLINE = 2 ** 31 - 1

/** The sets of a Deployment; `current` is the one of its template, once there is one. */
export interface Sets {
  readonly current: ReplicaSet | undefined
  readonly olds: readonly ReplicaSet[]
}

export function allOf({ current, olds }: Sets): ReplicaSet[] {
  return current === undefined ? [...olds] : [...olds, current]
}

export type Told = Pick<DeploymentCondition, 'type' | 'status' | 'reason' | 'message'>

/**
 * The conditions with this one at their end. The same again, by status and reason, changes nothing; the time of
 * transition is that of the status.
 */
export function tell(
  conditions: readonly DeploymentCondition[] = [],
  told: Told,
  nowMs: number,
  isNews = false,
): DeploymentCondition[] {
  const known = conditions.find(({ type }) => type === told.type)
  if (!isNews && known?.status === told.status && known.reason === told.reason) return [...conditions]
  const now = timeOf(nowMs)
  const lastTransitionTime = known?.status === told.status ? known.lastTransitionTime : now
  const others = conditions.filter(({ type }) => type !== told.type)
  const { type, status, reason, message } = told
  return [
    ...others,
    { type, status, lastUpdateTime: now, lastTransitionTime, ...(reason && { reason }), ...(message && { message }) },
  ]
}

export function progressing({ status }: Deployment): DeploymentCondition | undefined {
  return status.conditions?.find(({ type }) => type === 'Progressing')
}

export function hasDeadline({ spec }: Deployment): boolean {
  return spec.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds !== NO_DEADLINE
}

/** Counts and availability. */
export function countedStatus(deployment: Deployment, sets: Sets, nowMs: number): DeploymentStatus {
  const all = allOf(sets)
  const available = sum(all, ({ status }) => status.availableReplicas)
  const { collisionCount, conditions } = deployment.status
  const terminating = terminatingOf(all)
  const isEnough = available >= replicasOf(deployment) - tolerances(deployment).unavailable
  return {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: sum(all, ({ status }) => status.replicas),
    updatedReplicas: sets.current?.status.replicas ?? 0,
    readyReplicas: sum(all, ({ status }) => status.readyReplicas),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, sum(all, replicasOf) - available),
    ...(terminating !== undefined && { terminatingReplicas: terminating }),
    conditions: tell(conditions, isEnough ? AVAILABLE : UNAVAILABLE, nowMs),
    ...(collisionCount !== undefined && { collisionCount }),
  }
}

const AVAILABLE: Told = {
  type: 'Available',
  status: 'True',
  reason: 'MinimumReplicasAvailable',
  message: 'Deployment has minimum availability.',
}

const UNAVAILABLE: Told = {
  type: 'Available',
  status: 'False',
  reason: 'MinimumReplicasUnavailable',
  message: 'Deployment does not have minimum availability.',
}

/** Undefined when a set that was looked after does not tell. */
function terminatingOf(sets: readonly ReplicaSet[]): number | undefined {
  const synced = sets.filter(
    ({ status }) => (status.observedGeneration ?? 0) > 0 || status.terminatingReplicas !== undefined,
  )
  if (synced.some(({ status }) => status.terminatingReplicas === undefined)) return undefined
  return sum(synced, ({ status }) => status.terminatingReplicas)
}

/** The same, and how the rollout goes. */
export function rolloutStatus(deployment: Deployment, sets: Sets, nowMs: number): DeploymentStatus {
  const status = countedStatus(deployment, sets, nowMs)
  const failure = failureIn(sets)
  const conditions = withProgress(deployment, status, sets.current, nowMs)
  return {
    ...status,
    conditions:
      failure === undefined
        ? conditions.filter(({ type }) => type !== 'ReplicaFailure')
        : tell(conditions, failure, nowMs),
  }
}

function withProgress(
  deployment: Deployment,
  status: DeploymentStatus,
  current: ReplicaSet | undefined,
  nowMs: number,
): DeploymentCondition[] {
  const conditions = status.conditions ?? []
  if (!hasDeadline(deployment)) return conditions.filter(({ type }) => type !== 'Progressing')
  const known = progressing(deployment)
  if (status.replicas === status.updatedReplicas && known?.reason === 'NewReplicaSetAvailable') return conditions
  const { name } = deployment.metadata
  const subject = current === undefined ? `Deployment "${name}"` : `ReplicaSet "${current.metadata.name}"`
  const say = (status: string, reason: string, text: string, isNews = false): DeploymentCondition[] =>
    tell(conditions, { type: 'Progressing', status, reason, message: `${subject} ${text}` }, nowMs, isNews)
  if (isComplete(deployment, status)) return say('True', 'NewReplicaSetAvailable', 'has successfully progressed.')
  // The time of the last progress is what the deadline counts from.
  if (hasProgressed(deployment.status, status)) return say('True', 'ReplicaSetUpdated', 'is progressing.', true)
  if (isLate(deployment, known, nowMs)) return say('False', 'ProgressDeadlineExceeded', 'has timed out progressing.')
  return conditions
}

export function isComplete(deployment: Deployment, status: DeploymentStatus): boolean {
  const { updatedReplicas = 0, replicas = 0, availableReplicas = 0, observedGeneration = 0 } = status
  const isWhole = [updatedReplicas, replicas, availableReplicas].every((count) => count === replicasOf(deployment))
  return isWhole && observedGeneration >= (deployment.metadata.generation ?? 0)
}

function hasProgressed(before: DeploymentStatus, now: DeploymentStatus): boolean {
  const oldsOf = ({ replicas = 0, updatedReplicas = 0 }: DeploymentStatus): number => replicas - updatedReplicas
  return (
    (now.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    oldsOf(now) < oldsOf(before) ||
    (now.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (now.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  )
}

function isLate(deployment: Deployment, known: DeploymentCondition | undefined, nowMs: number): boolean {
  if (known === undefined || known.reason === 'NewReplicaSetAvailable') return false
  return known.reason === 'ProgressDeadlineExceeded' || deadlineMs(deployment, known) < nowMs
}

function deadlineMs({ spec }: Deployment, { lastUpdateTime }: DeploymentCondition): number {
  return epochMsOf(lastUpdateTime ?? '') + (spec.progressDeadlineSeconds ?? 0) * 1000
}

/** When to look whether a rollout that nobody hears of is late; undefined when that is settled. */
export function nextCheckMs(deployment: Deployment, status: DeploymentStatus, nowMs: number): number | undefined {
  const known = progressing(deployment)
  if (!hasDeadline(deployment) || known === undefined) return undefined
  if (isComplete(deployment, status) || known.reason === 'ProgressDeadlineExceeded') return undefined
  // One second more, so that it has passed.
  return Math.max(0, deadlineMs(deployment, known) - nowMs) + 1000
}

function failureIn(sets: Sets): Told | undefined {
  const candidates = [...(sets.current === undefined ? [] : [sets.current]), ...sets.olds]
  const found = candidates
    .map(({ status }) => status.conditions?.find(({ type }) => type === 'ReplicaFailure'))
    .find((condition) => condition !== undefined)
  return found
}

/** What is zero is left out by the server. */
export function sameStatus(one: DeploymentStatus, other: DeploymentStatus): boolean {
  const filled = (status: DeploymentStatus): DeploymentStatus => ({
    observedGeneration: 0,
    replicas: 0,
    updatedReplicas: 0,
    readyReplicas: 0,
    availableReplicas: 0,
    unavailableReplicas: 0,
    ...status,
  })
  return semanticEqual(filled(one), filled(other))
}

/** Conditions for a Deployment that was paused or goes on; undefined when they say so already. */
export function pausedConditions(deployment: Deployment, nowMs: number): DeploymentCondition[] | undefined {
  const known = findCondition(deployment.status.conditions as Told[] | undefined, 'Progressing')
  if (!hasDeadline(deployment) || known?.reason === 'ProgressDeadlineExceeded') return undefined
  const isPaused = deployment.spec.paused === true
  if (isPaused === (known?.reason === 'DeploymentPaused')) return undefined
  const [reason, message] = isPaused
    ? ['DeploymentPaused', 'Deployment is paused']
    : ['DeploymentResumed', 'Deployment is resumed']
  return tell(deployment.status.conditions, { type: 'Progressing', status: 'Unknown', reason, message }, nowMs)
}
