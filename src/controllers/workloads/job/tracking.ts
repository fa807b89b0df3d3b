/**
 * Counts each finished pod exactly once: first its uid goes to `uncountedTerminatedPods`, then its finalizer is
 * removed, then the counters increase.
 */
import { type Job, type JobCondition, Jobs, type JobStatus, type UncountedTerminatedPods } from '#apis/batch/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import { isBeingDeleted, semanticEqual } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { ControllerContext } from '../../controller.ts'
import { countIndexes, hasIndex, indexesText, parseIndexes, withIndexes } from './indexes.ts'
import { indexOf, isFailed, isIndexed, isValid, TRACKING } from './pods.ts'
import { applyFailurePolicy } from './policy.ts'
import { type End, isTracked, type View } from './view.ts'

/** The maximum number of uncounted uids. */
const MAX_UNCOUNTED = 500

export interface Account {
  readonly view: View
  /** Without the pods that have finished. */
  readonly status: JobStatus
  readonly end: End | undefined
  /** Terminating after this sync. */
  readonly terminating: number
  /** Pods without our finalizer; those released here are added. */
  readonly released: Set<string>
  readonly context: ControllerContext
  /** Called after every write. */
  readonly wrote: (job: Job) => void
}

/** Updates the status and removes finalizers of counted pods. Throws if a removal failed. */
export async function track(account: Account): Promise<void> {
  const { view, end, context } = account
  const { job, pods } = view
  const tracked = new Set(pods.filter((pod) => isTracked(pod, account.released)).map(uidOf))
  const settled = settle(account.status, tracked)
  const { status: noted, ended, isCut } = note(account, settled)
  const nowMs = context.clock.now()
  const announced = end === undefined || end.hasInterimCondition ? noted : withCondition(noted, interim(end), nowMs)
  let written = await write(account, job, announced)
  const failures = await release(account, ended)
  for (const pod of ended) if (account.released.has(uidOf(pod))) tracked.delete(uidOf(pod))
  const counted = settle(written.status, tracked)
  const isOver = end !== undefined && !isCut && failures.length === 0 && canEnd(counted, account.terminating)
  const final = isOver ? finished(counted, end, nowMs) : counted
  written = await write(account, written, final)
  recordCounts(job, written.status, context)
  if (failures.length > 0) throw failures[0]?.error
  if (!isOver) return
  recordFinished(written, end, context)
  const mode = job.spec.completionMode ?? 'NonIndexed'
  const result = end.type === 'Complete' ? 'succeeded' : 'failed'
  context.meters.family('job_controller_jobs_finished_total').labels(mode, result, end.reason).inc()
}

function recordCounts({ spec, status: before }: Job, after: JobStatus, { meters }: ControllerContext): void {
  const { completionMode: mode = 'NonIndexed', completions = 0, backoffLimitPerIndex } = spec
  const finished = meters.family('job_controller_job_pods_finished_total')
  const indexes = meters.family('job_controller_job_finished_indexes_total')
  const limit = backoffLimitPerIndex === undefined ? 'global' : 'perIndex'
  const count = (text: string | undefined): number => countIndexes(parseIndexes(text, completions))
  for (const result of ['succeeded', 'failed'] as const)
    finished.labels(mode, result).inc(Math.max(0, (after[result] ?? 0) - (before[result] ?? 0)))
  if (mode !== 'Indexed') return
  const won = count(after.completedIndexes) - count(before.completedIndexes)
  if (won > 0) indexes.labels('succeeded', limit).inc(won)
  const lost = count(after.failedIndexes) - count(before.failedIndexes)
  if (lost > 0) indexes.labels('failed', limit).inc(lost)
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? ''
}

/** Moves uids without a finalizer from the uncounted list to the counters. */
function settle(status: JobStatus, tracked: ReadonlySet<string>): JobStatus {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {}
  const left = {
    succeeded: succeeded.filter((uid) => tracked.has(uid)),
    failed: failed.filter((uid) => tracked.has(uid)),
  }
  return {
    ...status,
    succeeded: (status.succeeded ?? 0) + succeeded.length - left.succeeded.length,
    failed: (status.failed ?? 0) + failed.length - left.failed.length,
    uncountedTerminatedPods: withoutEmpty(left),
  }
}

function withoutEmpty(uids: { readonly succeeded: string[]; readonly failed: string[] }): UncountedTerminatedPods {
  return {
    ...(uids.succeeded.length > 0 && { succeeded: uids.succeeded }),
    ...(uids.failed.length > 0 && { failed: uids.failed }),
  }
}

interface TrackedStatus {
  readonly status: JobStatus
  /** Pods that may be released. */
  readonly ended: readonly Pod[]
  /** There were more than the limit. */
  readonly isCut: boolean
}

function note(account: Account, settled: JobStatus): TrackedStatus {
  const { view, released } = account
  const { job } = view
  const candidates = view.pods.filter((pod) => isTracked(pod, released) && mayGo(account, pod))
  const { succeeded = [], failed = [] } = settled.uncountedTerminatedPods ?? {}
  const notes = { succeeded: [...succeeded], failed: [...failed], indexes: [] as number[] }
  const ended: Pod[] = []
  for (const pod of byIndex(job, candidates)) {
    if (notes.indexes.length + notes.succeeded.length + notes.failed.length >= MAX_UNCOUNTED) break
    ended.push(pod)
    const place = uncountedListOf(account, pod)
    if (place === 'indexes') notes.indexes.push(indexOf(pod) ?? -1)
    else if (place !== undefined) notes[place].push(uidOf(pod))
  }
  const uncounted = { ...settled, uncountedTerminatedPods: withoutEmpty(notes) }
  const status = isIndexed(job) ? withCountedIndexes(view, uncounted, notes.indexes) : uncounted
  return { status, ended, isCut: ended.length < candidates.length }
}

/** The list for a pod's uid; undefined if it is already there or does not count. */
function uncountedListOf(account: Account, pod: Pod): 'succeeded' | 'failed' | 'indexes' | undefined {
  const { job, countedIndexes } = account.view
  const { succeeded = [], failed = [] } = job.status.uncountedTerminatedPods ?? {}
  if (failed.includes(uidOf(pod))) return undefined
  if (pod.status.phase !== 'Succeeded') return countsAsFailed(account, pod) ? 'failed' : undefined
  if (!isIndexed(job)) return succeeded.includes(uidOf(pod)) ? undefined : 'succeeded'
  return isValid(job, pod) && !hasIndex(countedIndexes, indexOf(pod) ?? -1) ? 'indexes' : undefined
}

function byIndex(job: Job, pods: readonly Pod[]): readonly Pod[] {
  return isIndexed(job) ? [...pods].sort((a, b) => (indexOf(a) ?? -1) - (indexOf(b) ?? -1)) : pods
}

function withCountedIndexes(view: View, status: JobStatus, added: readonly number[]): JobStatus {
  const succeeded = withIndexes(view.succeededIndexes, added)
  const { completedIndexes: _, failedIndexes: __, ...rest } = status
  return {
    ...rest,
    succeeded: countIndexes(succeeded),
    ...(succeeded.length > 0 && { completedIndexes: indexesText(succeeded) }),
    ...(view.failedIndexes !== undefined && { failedIndexes: indexesText(view.failedIndexes) }),
  }
}

function mayGo({ view, end }: Account, pod: Pod): boolean {
  const { job, lastFailed } = view
  if (isBeingDeleted(job) || end !== undefined || pod.status.phase === 'Succeeded') return true
  return isFailed(job, pod) && lastFailed.get(indexOf(pod) ?? -1) !== pod
}

function countsAsFailed({ view: { job }, end }: Account, pod: Pod): boolean {
  if (!isFailed(job, pod) && end?.type !== 'Failed') return false
  return isValid(job, pod) && applyFailurePolicy(job, pod).isCounted
}

async function release({ released, context }: Account, pods: readonly Pod[]): Promise<{ readonly error: unknown }[]> {
  const results = await Promise.all(pods.map((pod) => releasePod(pod, context)))
  for (const [at, pod] of pods.entries()) if (results[at] === undefined) released.add(uidOf(pod))
  return results.filter((result) => result !== undefined)
}

/** Undefined on success. */
export async function releasePod(
  { metadata: { namespace, name = '' } }: Pod,
  { client, signal }: ControllerContext,
): Promise<{ readonly error: unknown } | undefined> {
  const value = { metadata: { '$deleteFromPrimitiveList/finalizers': [TRACKING] } }
  try {
    await client.patch(Pods, { namespace, name }, { type: 'strategic', value }, { signal })
  } catch (error) {
    if (!isNotFound(error)) return { error }
  }
  return undefined
}

async function write({ context, wrote }: Account, job: Job, status: JobStatus): Promise<Job> {
  if (semanticEqual(filled(job.status), filled(status)) && job.status.ready !== undefined) return job
  const { client, signal } = context
  const written = await client.updateStatus(Jobs, { ...job, status }, { signal })
  wrote(written)
  return written
}

/** The server omits zeros. */
function filled(status: JobStatus): JobStatus {
  return { active: 0, succeeded: 0, failed: 0, ...status }
}

function interim({ type, reason, message }: End): Omit<JobCondition, 'lastProbeTime' | 'lastTransitionTime'> {
  return { type: type === 'Failed' ? 'FailureTarget' : 'SuccessCriteriaMet', status: 'True', reason, message }
}

/** Replaces the condition of its type, or appends it. */
export function withCondition(
  status: JobStatus,
  condition: Omit<JobCondition, 'lastProbeTime' | 'lastTransitionTime'>,
  nowMs: number,
): JobStatus {
  const now = timeOf(nowMs)
  const { type, status: value, ...rest } = condition
  const dated = { type, status: value, lastProbeTime: now, lastTransitionTime: now, ...rest }
  const conditions = status.conditions ?? []
  const isKnown = conditions.some((one) => one.type === type)
  const next = isKnown ? conditions.map((one) => (one.type === type ? dated : one)) : [...conditions, dated]
  return { ...status, conditions: next }
}

function canEnd({ uncountedTerminatedPods = {} }: JobStatus, terminating: number): boolean {
  const { succeeded = [], failed = [] } = uncountedTerminatedPods
  return succeeded.length + failed.length === 0 && terminating === 0
}

function finished(status: JobStatus, { type, reason, message }: End, nowMs: number): JobStatus {
  const ended = withCondition(status, { type, status: 'True', reason, message }, nowMs)
  return type === 'Complete' ? { ...ended, completionTime: timeOf(nowMs) } : ended
}

function recordFinished(job: Job, { type, reason, message }: End, { event }: ControllerContext): void {
  if (type === 'Failed') return event(job, { type: 'Warning', reason, message })
  if ((job.status.succeeded ?? 0) > (job.spec.completions ?? Infinity)) {
    const text = 'Too many succeeded pods running after completion count reached'
    event(job, { type: 'Warning', reason: 'TooManySucceededPods', message: text })
  }
  event(job, { type: 'Normal', reason: 'Completed', message: 'Job completed' })
}
