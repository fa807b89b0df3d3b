/** Creates missing pods of a Job and deletes surplus ones. */
import { type Job } from '#apis/batch/v1.ts'
import type { Pod } from '#apis/core/v1.ts'
import { hasFinalizer, isBeingDeleted, objectKey } from '#meta/object.ts'
import { isReady, isTerminal } from '#model/pods.ts'

import type { ControllerContext } from '../../controller.ts'
import { createPod, deletePod } from '../../pod-creation.ts'
import { indexWaitMs, waitMs } from './backoff.ts'
import { freeIndexes, merge, withIndexes } from './indexes.ts'
import { countsAfter, indexesOf, isIndexed, podFor, podsToDeleteFirst, replacesFailedOnly, TRACKING } from './pods.ts'
import { applyFailurePolicy } from './policy.ts'
import { releasePod } from './tracking.ts'
import { isSuspended, type View } from './view.ts'

/** The maximum number of pods that one sync creates or deletes. */
const BURST = 500

export interface ManageResult {
  readonly active: number
  readonly ready: number
  readonly terminating: number
  readonly failure?: { readonly error: unknown }
  readonly action?: 'pods_created' | 'pods_deleted'
  /** The time until failed pods may be replaced. */
  readonly waitMs?: number
}

export async function manage(view: View, context: ControllerContext): Promise<ManageResult> {
  const { job, active, ready, terminating } = view
  if (isSuspended(job)) return remove(view, active, context)
  const wanted = wantedOf(view)
  const surplus = podsToDeleteFirst(job, active, Math.max(0, active.length - wanted)).slice(0, BURST)
  if (surplus.length > 0) return remove(view, surplus, context)
  const idle = { active: active.length, ready, terminating }
  const missing = wanted - active.length - (replacesFailedOnly(job) ? terminating : 0)
  if (missing <= 0) return idle
  const nowMs = context.clock.now()
  const hasOwnLimits = job.spec.backoffLimitPerIndex !== undefined
  const wait = hasOwnLimits ? 0 : waitMs(view.failures, nowMs)
  if (wait > 0) return { ...idle, waitMs: wait }
  const due = dueIndexes(view, Math.min(missing, BURST), nowMs)
  if (due.waitMs > 0) return { ...idle, waitMs: due.waitMs }
  return create(view, due.indexes ?? Math.min(missing, BURST), context)
}

/** At most `parallelism`, and no more than still needed. */
function wantedOf({ job, active, succeeded }: View): number {
  const { parallelism = 1, completions } = job.spec
  if (completions === undefined) return succeeded > 0 ? active.length : parallelism
  return Math.max(0, Math.min(completions - succeeded, parallelism))
}

interface DuePods {
  /** Undefined for a Job without indexes. */
  readonly indexes?: readonly number[]
  readonly waitMs: number
}

function dueIndexes(
  { job, pods, active, succeededIndexes, failedIndexes, lastFailed }: View,
  count: number,
  nowMs: number,
): DuePods {
  if (!isIndexed(job)) return { waitMs: 0 }
  const going = replacesFailedOnly(job) ? pods.filter((pod) => isBeingDeleted(pod) && !isTerminal(pod)) : []
  const running = withIndexes(succeededIndexes, indexesOf([...active, ...going]))
  const free = freeIndexes(merge(running, failedIndexes ?? []), count, job.spec.completions ?? 0)
  const waits = free.map((index) => indexWaitMs(lastFailed.get(index), nowMs))
  const indexes = free.filter((_, at) => waits[at] === 0)
  return { indexes, waitMs: indexes.length > 0 || free.length === 0 ? 0 : Math.min(...waits) }
}

async function create(view: View, what: number | readonly number[], context: ControllerContext): Promise<ManageResult> {
  const { job, active, ready, terminating } = view
  const indexes = typeof what === 'number' ? undefined : [...what]
  const createOne = (): Promise<Pod> => createPod(context, job, draftOf(view, indexes?.shift()))
  const count = typeof what === 'number' ? what : what.length
  const outcome = await context.expectations.create(objectKey(job), count, createOne)
  const done = { active: active.length + outcome.done, ready, terminating, action: 'pods_created' as const }
  const { meters } = context
  const made = meters.family('job_controller_job_pods_creation_total')
  const isAnew = view.failed > 0 || terminating > 0
  const isPatient = job.spec.podReplacementPolicy === 'Failed' && view.failed > 0
  const reason = isPatient ? 'recreate_failed' : isAnew ? 'recreate_terminating_or_failed' : 'new'
  if (outcome.done > 0) made.labels(reason, 'succeeded').inc(outcome.done)
  if ('error' in outcome) made.labels(reason, 'failed').inc(count - outcome.done)
  return 'error' in outcome ? { ...done, failure: { error: outcome.error } } : done
}

function draftOf({ job, lastFailed }: View, index: number | undefined): Pick<Pod, 'metadata' | 'spec'> {
  if (index === undefined || job.spec.backoffLimitPerIndex === undefined) return podFor(job, index)
  const before = lastFailed.get(index)
  return podFor(job, index, countsAfter(before, before !== undefined && applyFailurePolicy(job, before).isCounted))
}

/** Deleted surplus pods count neither as failed nor as succeeded. */
async function remove(view: View, pods: readonly Pod[], context: ControllerContext): Promise<ManageResult> {
  return removed(view, pods, await take(view.job, pods, context, true))
}

/** Deletes all active pods of a finished Job; they keep their finalizer until they are counted. */
export async function removeAll(view: View, context: ControllerContext): Promise<ManageResult> {
  return removed(view, view.active, await take(view.job, view.active, context, false))
}

interface RemovalResult {
  readonly done: number
  readonly error?: unknown
}

function take(job: Job, pods: readonly Pod[], context: ControllerContext, isReleased: boolean): Promise<RemovalResult> {
  return context.expectations.delete(objectKey(job), pods, async (pod) => {
    const failure = isReleased && hasFinalizer(pod, TRACKING) ? await releasePod(pod, context) : undefined
    if (failure !== undefined) throw failure.error
    await deletePod(context, job, pod)
  })
}

function removed({ active, ready, terminating }: View, pods: readonly Pod[], taken: RemovalResult): ManageResult {
  const done = {
    active: active.length - taken.done,
    ready: ready - pods.filter(isReady).length,
    terminating: terminating + taken.done,
    action: 'pods_deleted' as const,
  }
  return 'error' in taken ? { ...done, failure: { error: taken.error } } : done
}
