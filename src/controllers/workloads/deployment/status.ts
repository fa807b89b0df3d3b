/** Computes the status of a Deployment: counts, availability and progress. Pure. */
import type { Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet } from '#apis/apps/v1.ts'
import { findCondition } from '#meta/conditions.ts'
import { semanticEqual } from '#meta/object.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'

import { replicasOf, sum, tolerances } from './sizes.ts'

const NO_DEADLINE = 2 ** 31 - 1

/** The ReplicaSets of a Deployment; `current` matches its template, if it exists. */
export interface Sets {
  readonly current: ReplicaSet | undefined
  readonly olds: readonly ReplicaSet[]
}

export function allOf({ current, olds }: Sets): ReplicaSet[] {
  return current === undefined ? [...olds] : [...olds, current]
}

export type ConditionUpdate = Pick<DeploymentCondition, 'type' | 'status' | 'reason' | 'message'>

/**
 * Puts the condition at the end. Unchanged if status and reason are equal; the transition time changes only with the
 * status.
 */
export function withCondition(
  conditions: readonly DeploymentCondition[] = [],
  update: ConditionUpdate,
  nowMs: number,
  isForced = false,
): DeploymentCondition[] {
  const known = conditions.find(({ type }) => type === update.type)
  if (!isForced && known?.status === update.status && known.reason === update.reason) return [...conditions]
  const now = timeOf(nowMs)
  const lastTransitionTime = known?.status === update.status ? known.lastTransitionTime : now
  const others = conditions.filter(({ type }) => type !== update.type)
  const { type, status, reason, message } = update
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

/** Counts and the Available condition. */
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
    conditions: withCondition(conditions, isEnough ? AVAILABLE : UNAVAILABLE, nowMs),
    ...(collisionCount !== undefined && { collisionCount }),
  }
}

const AVAILABLE: ConditionUpdate = {
  type: 'Available',
  status: 'True',
  reason: 'MinimumReplicasAvailable',
  message: 'Deployment has minimum availability.',
}

const UNAVAILABLE: ConditionUpdate = {
  type: 'Available',
  status: 'False',
  reason: 'MinimumReplicasUnavailable',
  message: 'Deployment does not have minimum availability.',
}

/** Undefined if a ReplicaSet does not report it. */
function terminatingOf(sets: readonly ReplicaSet[]): number | undefined {
  const synced = sets.filter(
    ({ status }) => (status.observedGeneration ?? 0) > 0 || status.terminatingReplicas !== undefined,
  )
  if (synced.some(({ status }) => status.terminatingReplicas === undefined)) return undefined
  return sum(synced, ({ status }) => status.terminatingReplicas)
}

/** Counts, and the Progressing condition. */
export function rolloutStatus(deployment: Deployment, sets: Sets, nowMs: number): DeploymentStatus {
  const status = countedStatus(deployment, sets, nowMs)
  const failure = failureIn(sets)
  const conditions = withProgress(deployment, status, sets.current, nowMs)
  return {
    ...status,
    conditions:
      failure === undefined
        ? conditions.filter(({ type }) => type !== 'ReplicaFailure')
        : withCondition(conditions, failure, nowMs),
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
  const report = (status: string, reason: string, text: string, isForced = false): DeploymentCondition[] =>
    withCondition(conditions, { type: 'Progressing', status, reason, message: `${subject} ${text}` }, nowMs, isForced)
  if (isComplete(deployment, status)) return report('True', 'NewReplicaSetAvailable', 'has successfully progressed.')
  // The deadline counts from the last progress.
  if (hasProgressed(deployment.status, status)) return report('True', 'ReplicaSetUpdated', 'is progressing.', true)
  if (isLate(deployment, known, nowMs)) return report('False', 'ProgressDeadlineExceeded', 'has timed out progressing.')
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

/** When to check a rollout's progress deadline; undefined if the outcome is final. */
export function nextCheckMs(deployment: Deployment, status: DeploymentStatus, nowMs: number): number | undefined {
  const known = progressing(deployment)
  if (!hasDeadline(deployment) || known === undefined) return undefined
  if (isComplete(deployment, status) || known.reason === 'ProgressDeadlineExceeded') return undefined
  // One second more, so that the deadline has passed.
  return Math.max(0, deadlineMs(deployment, known) - nowMs) + 1000
}

function failureIn(sets: Sets): ConditionUpdate | undefined {
  const candidates = [...(sets.current === undefined ? [] : [sets.current]), ...sets.olds]
  const found = candidates
    .map(({ status }) => status.conditions?.find(({ type }) => type === 'ReplicaFailure'))
    .find((condition) => condition !== undefined)
  return found
}

/** The server omits zeros. */
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

/** Conditions of a paused or resumed Deployment; undefined if unchanged. */
export function pausedConditions(deployment: Deployment, nowMs: number): DeploymentCondition[] | undefined {
  const known = findCondition(deployment.status.conditions as ConditionUpdate[] | undefined, 'Progressing')
  if (!hasDeadline(deployment) || known?.reason === 'ProgressDeadlineExceeded') return undefined
  const isPaused = deployment.spec.paused === true
  if (isPaused === (known?.reason === 'DeploymentPaused')) return undefined
  const [reason, message] = isPaused
    ? ['DeploymentPaused', 'Deployment is paused']
    : ['DeploymentResumed', 'Deployment is resumed']
  return withCondition(deployment.status.conditions, { type: 'Progressing', status: 'Unknown', reason, message }, nowMs)
}
