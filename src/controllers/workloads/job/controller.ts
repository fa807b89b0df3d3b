/** Job controller: runs pods to completion until enough succeed or the Job fails. */
import { type Job, Jobs, type JobStatus } from '#apis/batch/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { asSelector } from '#meta/label-selector.ts'
import { matchesLabels } from '#meta/labels.ts'
import { controllerOf, hasFinalizer, isBeingDeleted, objectKey } from '#meta/object.ts'
import { isNotFound } from '#meta/status.ts'
import { timeOf } from '#meta/time.ts'
import type { Cache } from '#reconcile/cache.ts'
import { itself, ownedBy, related, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController, perRun } from '../../controller.ts'
import { claim } from '../adoption.ts'
import { type FailureCount, NO_FAILURES } from './backoff.ts'
import { manage, type ManageResult, removeAll } from './manage.ts'
import { TRACKING } from './pods.ts'
import { releasePod, track, withCondition } from './tracking.ts'
import { deadlineMs, type End, endOf, isFinished, isSuspended, REACHED, type View, viewOf } from './view.ts'

/** Delays pod events, so that pods that finish together are counted together. */
const BATCH_MS = 1000
/** The key prefix of pods without a Job. */
const ORPHAN = 'orphan '
const OWN_NAME = 'kubernetes.io/job-controller'

/** State of a Job beyond its objects. */
interface JobState {
  failures: FailureCount
  readonly released: Set<string>
  /** The last written version: an older cached Job is stale. */
  version: string
}

const memories = perRun(() => new Map<string, JobState>())

export const jobController: Controller = defineController({
  name: 'job-controller',
  aliases: ['job'],
  retry: { baseMs: 1000, capMs: 60_000 },
  watches: [
    itself(Jobs),
    { ...ownedBy(Jobs, Pods), delayMs: BATCH_MS },
    related(Pods, jobsThatMightAdopt),
    related(Pods, orphanKeys),
  ],
  rules: [
    rule('batch', 'jobs', 'get list watch update patch'),
    rule('batch', 'jobs/status', 'update'),
    rule('batch', 'jobs/finalizers', 'update'),
    rule('', 'pods', 'list watch create delete patch'),
    EVENTS,
  ],

  async reconcile(key, context) {
    if (key.startsWith(ORPHAN)) return releaseOrphan(key.slice(ORPHAN.length), context)
    const { cache, expectations } = context
    const job = cache.get(Jobs, key)
    if (job === undefined || isFinished(job)) memories(context).delete(key)
    if (job === undefined) {
      expectations.forget(key)
      return releaseAll(key, context)
    }
    if (isFinished(job) || (job.spec.managedBy ?? OWN_NAME) !== OWN_NAME) return
    if (!['Indexed', 'NonIndexed'].includes(job.spec.completionMode ?? 'NonIndexed')) {
      const message = 'Skipped Job sync because completion mode is unknown'
      return context.event(job, { type: 'Warning', reason: 'UnknownCompletionMode', message })
    }
    return measuredSync(key, job, context)
  },
})

/** The metric labels of a sync. */
interface SyncResult {
  action: 'reconciling' | 'tracking' | 'pods_created' | 'pods_deleted'
}

async function measuredSync(key: string, job: Job, context: ControllerContext): Promise<Requeue | void> {
  const { clock, meters } = context
  const startMs = clock.elapsed()
  const deed: SyncResult = { action: 'reconciling' }
  let result = 'error'
  try {
    const requeue = await sync(key, job, context, deed)
    result = 'success'
    return requeue
  } finally {
    const labels = [job.spec.completionMode ?? 'NonIndexed', result, deed.action] as const
    meters
      .family('job_controller_job_syncs_total')
      .labels(...labels)
      .inc()
    const seconds = meters.family('job_controller_job_sync_duration_seconds').labels(...labels)
    seconds.observe((clock.elapsed() - startMs) / 1000)
  }
}

function jobsThatMightAdopt(pod: Pod, cache: Cache): string[] {
  if (controllerOf(pod) !== undefined) return []
  const jobs = cache.inNamespace(Jobs, pod.metadata.namespace ?? '')
  return jobs.filter(({ spec }) => matchesLabels(asSelector(spec.selector), pod.metadata.labels)).map(objectKey)
}

/** Pods with our finalizer whose Job is gone or has released them. */
function orphanKeys(pod: Pod, cache: Cache): string[] {
  if (!hasFinalizer(pod, TRACKING)) return []
  const owner = controllerOf(pod)
  const job = owner?.kind === 'Job' ? cache.get(Jobs, `${pod.metadata.namespace}/${owner.name}`) : undefined
  return job !== undefined && job.metadata.uid === owner?.uid ? [] : [ORPHAN + objectKey(pod)]
}

function releaseAll(key: string, { cache, enqueue }: ControllerContext): void {
  const [namespace = '', name] = key.split('/')
  for (const pod of cache.inNamespace(Pods, namespace)) {
    if (hasFinalizer(pod, TRACKING) && controllerOf(pod)?.name === name) enqueue(ORPHAN + objectKey(pod))
  }
}

async function releaseOrphan(key: string, context: ControllerContext): Promise<void> {
  const { cache, client, signal } = context
  const pod = cache.get(Pods, key)
  if (pod === undefined || !hasFinalizer(pod, TRACKING)) return
  const owner = controllerOf(pod)
  if (owner?.kind === 'Job') {
    // The cache may be stale: ask the server whether the Job exists.
    const where = { namespace: pod.metadata.namespace, name: owner.name }
    const job = await client.get(Jobs, where, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
      return undefined
    })
    if (job?.metadata.uid === owner.uid) return
  }
  const failure = await releasePod(pod, context)
  if (failure !== undefined) throw failure.error
}

function podsOf(job: Job, context: ControllerContext): Promise<Pod[]> {
  const { cache } = context
  const selector = asSelector(job.spec.selector)
  const candidates = [...cache.ownedBy(Pods, job), ...cache.orphansIn(Pods, job.metadata.namespace ?? '')]
  const matches = ({ metadata }: Pod): boolean => matchesLabels(selector, metadata.labels)
  return claim(context, { owner: job, ownerKind: Jobs, kind: Pods, matches, finalizer: TRACKING }, candidates)
}

function memoryOf(key: string, context: ControllerContext): JobState {
  const known = memories(context)
  const memory = known.get(key) ?? { failures: NO_FAILURES, released: new Set(), version: '0' }
  known.set(key, memory)
  return memory
}

async function sync(key: string, found: Job, context: ControllerContext, deed: SyncResult): Promise<Requeue | void> {
  const { clock, expectations } = context
  const memory = memoryOf(key, context)
  if (BigInt(found.metadata.resourceVersion ?? 0) < BigInt(memory.version)) return { requeueAfterMs: BATCH_MS }
  const isSatisfied = expectations.satisfied(key)
  const pods = await podsOf(found, context)
  const tracked = new Set(pods.filter((pod) => hasFinalizer(pod, TRACKING)).map(({ metadata }) => metadata.uid))
  for (const uid of memory.released) if (!tracked.has(uid)) memory.released.delete(uid)
  const nowMs = clock.now()
  const job = started(found, nowMs)
  const view = viewOf({ job, pods, released: memory.released, failures: memory.failures })
  const end = endOf(view, nowMs)
  const done =
    end === undefined ? await continueJob(view, isSatisfied, context) : await finishJob(view, end, isSatisfied, context)
  deed.action = done.action ?? (end === undefined && isSatisfied && !isBeingDeleted(job) ? 'tracking' : deed.action)
  const { active, ready, terminating } = done
  const status: JobStatus = { ...done.status, active, ready, terminating }
  const wrote = ({ metadata }: Job): void => {
    memory.version = metadata.resourceVersion ?? '0'
    memory.failures = view.failures
  }
  await track({
    view: { ...view, job: found },
    status,
    end: done.end,
    terminating,
    released: memory.released,
    context,
    wrote,
  })
  if (done.failure !== undefined) throw done.failure.error
  const waits = [done.waitMs ?? Infinity, done.end === undefined ? deadlineMs(job, nowMs) : Infinity]
  const requeueAfterMs = Math.max(0, Math.min(...waits))
  return Number.isFinite(requeueAfterMs) ? { requeueAfterMs } : undefined
}

function started(job: Job, nowMs: number): Job {
  if (job.status.startTime !== undefined || isSuspended(job)) return job
  return { ...job, status: { ...job.status, startTime: timeOf(nowMs) } }
}

interface FinishedSync extends ManageResult {
  readonly status: JobStatus
  readonly end: End | undefined
}

/** Deletes running pods of a finished Job, then writes its final condition. */
async function finishJob(
  view: View,
  end: End,
  isSatisfied: boolean,
  context: ControllerContext,
): Promise<FinishedSync> {
  const done = await removeAll(view, context)
  const isClear = done.failure === undefined && isSatisfied
  return { ...done, status: view.job.status, end: isClear ? end : undefined }
}

async function continueJob(view: View, isSatisfied: boolean, context: ControllerContext): Promise<FinishedSync> {
  const { job, active, ready, terminating, succeeded } = view
  const mayAct = isSatisfied && !isBeingDeleted(job)
  const idle: ManageResult = { active: active.length, ready, terminating }
  const done = mayAct ? await manage(view, context) : idle
  const { completions } = job.spec
  const isEnough = completions === undefined ? succeeded > 0 : succeeded >= completions
  if (isEnough && done.active === 0) return { ...done, status: job.status, end: REACHED }
  return { ...done, status: mayAct ? suspensionStatus(job, context) : job.status, end: undefined }
}

function suspensionStatus(job: Job, { clock, event }: ControllerContext): JobStatus {
  const known = job.status.conditions?.find(({ type }) => type === 'Suspended')
  const isReported = known?.status === 'True'
  if (isSuspended(job) === isReported) return job.status
  const [value, reason, message] = isSuspended(job)
    ? ['True', 'JobSuspended', 'Job suspended']
    : ['False', 'JobResumed', 'Job resumed']
  event(job, { type: 'Normal', reason: isSuspended(job) ? 'Suspended' : 'Resumed', message })
  const nowMs = clock.now()
  const { startTime: _, ...rest } = withCondition(
    job.status,
    { type: 'Suspended', status: value, reason, message },
    nowMs,
  )
  return isSuspended(job) ? rest : { ...rest, startTime: timeOf(nowMs) }
}
