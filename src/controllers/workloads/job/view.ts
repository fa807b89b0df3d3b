/**
 * A snapshot of a Job and its pods: which pods have finished, which must be created, and whether the Job has finished.
 * Pure.
 */
import type { Job, JobCondition } from '#apis/batch/v1.ts'
import type { Pod } from '#apis/core/v1.ts'
import { hasFinalizer, isBeingDeleted } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import { isActive, isReady, isTerminal } from '#model/pods.ts'

import { type FailureCount, withEnded } from './backoff.ts'
import { countIndexes, hasIndex, type Indexes, parseIndexes, withIndexes } from './indexes.ts'
import {
  allFailuresBefore,
  endedMs,
  failuresBefore,
  indexesOf,
  indexOf,
  isFailed,
  isIndexed,
  isValid,
  TRACKING,
} from './pods.ts'
import { applyFailurePolicy, successMessage } from './policy.ts'

/** How the Job ends. `hasInterimCondition`: the interim condition is already set. */
export interface End {
  readonly type: 'Complete' | 'Failed'
  readonly reason: string
  readonly message: string
  readonly hasInterimCondition: boolean
}

export interface View {
  readonly job: Job
  readonly pods: readonly Pod[]
  readonly active: readonly Pod[]
  /** Terminating, not yet terminal. */
  readonly terminating: number
  readonly ready: number
  readonly succeeded: number
  readonly failed: number
  readonly failures: FailureCount
  /** Completed indexes: in the status, and including newly finished pods. */
  readonly countedIndexes: Indexes
  readonly succeededIndexes: Indexes
  /** Undefined without `backoffLimitPerIndex`. */
  readonly failedIndexes: Indexes | undefined
  /** The last failed pod of an index without a replacement: it is kept because it has the failure count. */
  readonly lastFailed: ReadonlyMap<number, Pod>
}

export interface JobObservation {
  readonly job: Job
  readonly pods: readonly Pod[]
  /** Pods whose finalizer was removed, though the cache does not show it. */
  readonly released: ReadonlySet<string>
  readonly failures: FailureCount
}

export function isSuspended({ spec }: Job): boolean {
  return spec.suspend === true
}

/** Whether the pod still has to be counted. */
export function isTracked(pod: Pod, released: ReadonlySet<string>): boolean {
  return hasFinalizer(pod, TRACKING) && !released.has(pod.metadata.uid ?? '')
}

export function viewOf({ job, pods, released, failures }: JobObservation): View {
  const { status } = job
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {}
  const tracked = pods.filter((pod) => isTracked(pod, released) && isValid(job, pod))
  const isNew =
    (known: readonly string[]) =>
    (pod: Pod): boolean =>
      !known.includes(pod.metadata.uid ?? '')
  const newSucceeded = tracked.filter((pod) => pod.status.phase === 'Succeeded').filter(isNew(succeeded))
  const newFailed = tracked.filter((pod) => isFailed(job, pod)).filter(isNew(failed))
  const counted = newFailed.filter((pod) => applyFailurePolicy(job, pod).isCounted)
  const active = pods.filter(isActive)
  const indexes = indexesIn(
    job,
    pods.filter((pod) => hasFinalizer(pod, TRACKING) && isValid(job, pod)),
  )
  return {
    job,
    pods,
    active,
    terminating: pods.filter((pod) => isBeingDeleted(pod) && !isTerminal(pod)).length,
    ready: active.filter(isReady).length,
    succeeded: isIndexed(job)
      ? countIndexes(indexes.succeededIndexes)
      : (status.succeeded ?? 0) + newSucceeded.length + succeeded.length,
    failed: (status.failed ?? 0) + counted.length + failed.length,
    failures: withEnded(failures, newSucceeded, newFailed),
    ...indexes,
    lastFailed: indexes.failedIndexes === undefined ? new Map() : lastFailedOf(job, tracked, active, indexes),
  }
}

type KnownIndexes = Pick<View, 'countedIndexes' | 'succeededIndexes' | 'failedIndexes'>

function indexesIn(job: Job, tracked: readonly Pod[]): KnownIndexes {
  if (!isIndexed(job)) return { countedIndexes: [], succeededIndexes: [], failedIndexes: undefined }
  const { completions = 0, backoffLimitPerIndex } = job.spec
  const countedIndexes = parseIndexes(job.status.completedIndexes, completions)
  const succeeded = tracked.filter((pod) => pod.status.phase === 'Succeeded')
  const failedBefore = parseIndexes(job.status.failedIndexes, completions)
  const lost = tracked.filter((pod) => isIndexLost(job, pod))
  return {
    countedIndexes,
    succeededIndexes: withIndexes(countedIndexes, indexesOf(succeeded)),
    failedIndexes: backoffLimitPerIndex === undefined ? undefined : withIndexes(failedBefore, indexesOf(lost)),
  }
}

/** Whether this failure exceeds the limit of its index. */
function isIndexLost(job: Job, pod: Pod): boolean {
  if (!isFailed(job, pod)) return false
  const { isCounted, action } = applyFailurePolicy(job, pod)
  if (action === 'FailIndex') return true
  return isCounted && failuresBefore(pod) >= (job.spec.backoffLimitPerIndex ?? Infinity)
}

function lastFailedOf(
  job: Job,
  tracked: readonly Pod[],
  active: readonly Pod[],
  { succeededIndexes, failedIndexes = [] }: KnownIndexes,
): Map<number, Pod> {
  const running = indexesOf(active)
  const found = new Map<number, Pod>()
  for (const pod of tracked.filter((one) => isFailed(job, one))) {
    const index = indexOf(pod) ?? -1
    if (hasIndex(succeededIndexes, index) || hasIndex(failedIndexes, index) || running.has(index)) continue
    const known = found.get(index)
    const isLater =
      known === undefined || (allFailuresBefore(known) <= allFailuresBefore(pod) && endedMs(pod) >= endedMs(known))
    if (isLater) found.set(index, pod)
  }
  return found
}

function trueCondition({ status }: Job, type: string): JobCondition | undefined {
  return status.conditions?.find((condition) => condition.type === type && condition.status === 'True')
}

/** Whether the Job has a final result and only waits for its pods. */
export function isFinished(job: Job): boolean {
  return trueCondition(job, 'Complete') !== undefined || trueCondition(job, 'Failed') !== undefined
}

/** The final result before all completions, checked in this order. */
export function endOf(view: View, nowMs: number): End | undefined {
  const { job } = view
  const success = trueCondition(job, 'SuccessCriteriaMet')
  if (success !== undefined) return endFromCondition('Complete', success)
  const target = trueCondition(job, 'FailureTarget')
  if (target !== undefined) return endFromCondition('Failed', target)
  const message = view.pods
    .filter((pod) => isFailed(job, pod))
    .map((pod) => applyFailurePolicy(job, pod).message)
    .find((text) => text !== undefined)
  if (message !== undefined) return failure('PodFailurePolicy', message)
  if (view.failed > (job.spec.backoffLimit ?? 6) || restartedTooOften(view)) {
    return failure('BackoffLimitExceeded', 'Job has reached the specified backoff limit')
  }
  if (deadlineMs(job, nowMs) <= 0) {
    return failure('DeadlineExceeded', 'Job was active longer than specified deadline')
  }
  return indexEnd(view)
}

function endFromCondition(type: End['type'], { reason = '', message = '' }: JobCondition): End {
  return { type, reason, message, hasInterimCondition: true }
}

function failure(reason: string, message: string): End {
  return { type: 'Failed', reason, message, hasInterimCondition: false }
}

/** The result of a Job with all completions. */
export const REACHED: End = {
  type: 'Complete',
  reason: 'CompletionsReached',
  message: 'Reached expected number of succeeded pods',
  hasInterimCondition: false,
}

function indexEnd({ job, succeededIndexes, failedIndexes }: View): End | undefined {
  if (!isIndexed(job)) return undefined
  const { completions = 0, maxFailedIndexes = Infinity } = job.spec
  const lost = countIndexes(failedIndexes ?? [])
  if (lost > maxFailedIndexes) {
    return failure('MaxFailedIndexesExceeded', 'Job has exceeded the specified maximal number of failed indexes')
  }
  if (lost > 0 && lost + countIndexes(succeededIndexes) >= completions) {
    return failure('FailedIndexes', 'Job has failed indexes')
  }
  const message = successMessage(job, succeededIndexes)
  return message === undefined
    ? undefined
    : { type: 'Complete', reason: 'SuccessPolicy', message, hasInterimCondition: false }
}

/** Container restarts count as failures. */
function restartedTooOften({ job, pods }: View): boolean {
  if (job.spec.template.spec.restartPolicy !== 'OnFailure') return false
  const restarts = pods
    .filter(({ status: { phase } }) => phase === 'Running' || phase === 'Pending')
    .flatMap(({ status }) => [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])])
    .reduce((total, { restartCount }) => total + restartCount, 0)
  const limit = job.spec.backoffLimit ?? 6
  return limit === 0 ? restarts > 0 : restarts >= limit
}

/** The time until `activeDeadlineSeconds`; Infinity without it. */
export function deadlineMs(job: Job, nowMs: number): number {
  const { activeDeadlineSeconds } = job.spec
  const { startTime } = job.status
  if (activeDeadlineSeconds === undefined || startTime === undefined || isSuspended(job)) return Infinity
  return epochMsOf(startTime) + activeDeadlineSeconds * 1000 - nowMs
}
