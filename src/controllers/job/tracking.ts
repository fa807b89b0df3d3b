/**
 * Accounting for pods that have ended, so that each is counted once whatever happens in between: its uid is noted in the
 * status, then its finalizer is taken off, then the note becomes a number.
 */
import { type Job, type JobCondition, Jobs, type JobStatus, type UncountedTerminatedPods } from '#apis/batch/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import { isBeingDeleted, semanticEqual } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'

import type { ControllerContext } from '../controller.ts'
import { countIndexes, hasIndex, indexesText, parseIndexes, withIndexes } from './indexes.ts'
import { indexOf, isFailed, isIndexed, isValid, TRACKING } from './pods.ts'
import { judge } from './policy.ts'
import { type End, isTracked, type View } from './view.ts'

/** More uids than this are not noted at once. */
const MAX_UNCOUNTED = 500

export interface Account {
  readonly view: View
  /** With everything but the pods that have ended. */
  readonly status: JobStatus
  readonly end: End | undefined
  /** On their way out after what this sync did. */
  readonly terminating: number
  /** Pods whose finalizer was taken off; what is taken off here is added. */
  readonly released: Set<string>
  readonly context: ControllerContext
  /** Hears of every write. */
  readonly wrote: (job: Job) => void
}

/** Brings the status up to date and lets go the pods it has counted. Throws when one could not be let go. */
export async function track(account: Account): Promise<void> {
  const { view, end, context } = account
  const { job, pods } = view
  const held = new Set(pods.filter((pod) => isTracked(pod, account.released)).map(uidOf))
  const settled = settle(account.status, held)
  const { status: noted, ended, isCut } = note(account, settled)
  const nowMs = context.clock.now()
  const announced = end === undefined || end.isTold ? noted : withCondition(noted, interim(end), nowMs)
  let written = await write(account, job, announced)
  const failures = await release(account, ended)
  for (const pod of ended) if (account.released.has(uidOf(pod))) held.delete(uidOf(pod))
  const counted = settle(written.status, held)
  const isOver = end !== undefined && !isCut && failures.length === 0 && canEnd(counted, account.terminating)
  const final = isOver ? finished(counted, end, nowMs) : counted
  written = await write(account, written, final)
  tellCounts(job, written.status, context)
  if (failures.length > 0) throw failures[0]?.error
  if (!isOver) return
  sayFinished(written, end, context)
  const mode = job.spec.completionMode ?? 'NonIndexed'
  const result = end.type === 'Complete' ? 'succeeded' : 'failed'
  context.meters.family('job_controller_jobs_finished_total').labels(mode, result, end.reason).inc()
}

function tellCounts({ spec, status: before }: Job, after: JobStatus, { meters }: ControllerContext): void {
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

/** What is noted and has no finalizer any more is a number from now on. */
function settle(status: JobStatus, held: ReadonlySet<string>): JobStatus {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {}
  const left = { succeeded: succeeded.filter((uid) => held.has(uid)), failed: failed.filter((uid) => held.has(uid)) }
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

interface Noted {
  readonly status: JobStatus
  /** Pods that may go. */
  readonly ended: readonly Pod[]
  /** There were more than may be noted at once. */
  readonly isCut: boolean
}

function note(account: Account, settled: JobStatus): Noted {
  const { view, released } = account
  const { job } = view
  const candidates = view.pods.filter((pod) => isTracked(pod, released) && mayGo(account, pod))
  const { succeeded = [], failed = [] } = settled.uncountedTerminatedPods ?? {}
  const notes = { succeeded: [...succeeded], failed: [...failed], indexes: [] as number[] }
  const ended: Pod[] = []
  for (const pod of byIndex(job, candidates)) {
    if (notes.indexes.length + notes.succeeded.length + notes.failed.length >= MAX_UNCOUNTED) break
    ended.push(pod)
    const place = placeOf(account, pod)
    if (place === 'indexes') notes.indexes.push(indexOf(pod) ?? -1)
    else if (place !== undefined) notes[place].push(uidOf(pod))
  }
  const uncounted = { ...settled, uncountedTerminatedPods: withoutEmpty(notes) }
  const status = isIndexed(job) ? withIndexesTold(view, uncounted, notes.indexes) : uncounted
  return { status, ended, isCut: ended.length < candidates.length }
}

/** Where a pod is noted; undefined where it is already, or counts for nothing. */
function placeOf(account: Account, pod: Pod): 'succeeded' | 'failed' | 'indexes' | undefined {
  const { job, toldIndexes } = account.view
  const { succeeded = [], failed = [] } = job.status.uncountedTerminatedPods ?? {}
  if (failed.includes(uidOf(pod))) return undefined
  if (pod.status.phase !== 'Succeeded') return countsAsFailed(account, pod) ? 'failed' : undefined
  if (!isIndexed(job)) return succeeded.includes(uidOf(pod)) ? undefined : 'succeeded'
  return isValid(job, pod) && !hasIndex(toldIndexes, indexOf(pod) ?? -1) ? 'indexes' : undefined
}

function byIndex(job: Job, pods: readonly Pod[]): readonly Pod[] {
  return isIndexed(job) ? [...pods].sort((a, b) => (indexOf(a) ?? -1) - (indexOf(b) ?? -1)) : pods
}

function withIndexesTold(view: View, status: JobStatus, added: readonly number[]): JobStatus {
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
  return isValid(job, pod) && judge(job, pod).isCounted
}

async function release({ released, context }: Account, pods: readonly Pod[]): Promise<{ readonly error: unknown }[]> {
  const results = await Promise.all(pods.map((pod) => releasePod(pod, context)))
  for (const [at, pod] of pods.entries()) if (results[at] === undefined) released.add(uidOf(pod))
  return results.filter((result) => result !== undefined)
}

/** Undefined when it is done. */
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

/** What is zero is left out by the server. */
function filled(status: JobStatus): JobStatus {
  return { active: 0, succeeded: 0, failed: 0, ...status }
}

function interim({ type, reason, message }: End): Omit<JobCondition, 'lastProbeTime' | 'lastTransitionTime'> {
  return { type: type === 'Failed' ? 'FailureTarget' : 'SuccessCriteriaMet', status: 'True', reason, message }
}

/** In place of the one of its type, or at the end. */
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

function sayFinished(job: Job, { type, reason, message }: End, { event }: ControllerContext): void {
  if (type === 'Failed') return event(job, { type: 'Warning', reason, message })
  if ((job.status.succeeded ?? 0) > (job.spec.completions ?? Infinity)) {
    const text = 'Too many succeeded pods running after completion count reached'
    event(job, { type: 'Warning', reason: 'TooManySucceededPods', message: text })
  }
  event(job, { type: 'Normal', reason: 'Completed', message: 'Job completed' })
}
