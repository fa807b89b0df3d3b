/** CronJob controller: creates Jobs on a schedule. */
import { type CronJob, CronJobs, type CronJobStatus, type Job, Jobs } from '#apis/batch/v1.ts'
import type { ObjectReference } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { checkTimeZone, type CronSchedule, parseCron } from '#lib/time/cron.ts'
import type { Requeue } from '#lib/work-queue.ts'
import { controllerRef, isBeingDeleted, isControlledBy, semanticEqual } from '#meta/object.ts'
import { isAlreadyExists, isNamespaceTerminating, isNotFound } from '#meta/status.ts'
import { epochMsOf, timeOf } from '#meta/time.ts'
import { itself, ownedBy, rule, EVENTS } from '#reconcile/controller.ts'

import { type Controller, type ControllerContext, defineController } from '../../controller.ts'
import { messageOf } from '../../pod-creation.ts'
import { localTime, mailTime, type Next, nextOf, startsOf, waitMs } from './schedule.ts'

const SCHEDULED = 'batch.kubernetes.io/cronjob-scheduled-timestamp'

export const cronJobController: Controller = defineController({
  name: 'cronjob-controller',
  aliases: ['cronjob'],
  watches: [itself(CronJobs), ownedBy(CronJobs, Jobs)],
  rules: [
    rule('batch', 'cronjobs', 'get list watch update'),
    rule('batch', 'jobs', 'get list watch create update delete patch'),
    rule('batch', 'cronjobs/status cronjobs/finalizers', 'update'),
    rule('', 'pods', 'list watch delete'),
    EVENTS,
  ],

  async reconcile(key, context) {
    const found = context.cache.get(CronJobs, key)
    if (found === undefined) return
    const turn = new CronJobSync(found, context)
    const jobs = context.cache.ownedBy(Jobs, found)
    try {
      await turn.updateActive(jobs)
      return await turn.start()
    } finally {
      await turn.forget(jobs)
      await turn.write()
    }
  },
})

/** One reconcile of a CronJob. Writes its status once, at the end. */
class CronJobSync {
  readonly #found: CronJob
  readonly #context: ControllerContext
  #status: CronJobStatus

  constructor(found: CronJob, context: ControllerContext) {
    this.#found = found
    this.#context = context
    this.#status = found.status
  }

  get #cronJob(): CronJob {
    return { ...this.#found, status: this.#status }
  }

  #record(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.event(this.#found, { type, reason, message })
  }

  #isActive({ metadata }: Job): boolean {
    return this.#status.active?.some(({ uid }) => uid === metadata.uid) ?? false
  }

  #drop(uid: string | undefined): void {
    this.#status = { ...this.#status, active: this.#status.active?.filter((one) => one.uid !== uid) ?? [] }
  }

  /** Updates the status from the Jobs that were started. */
  async updateActive(jobs: readonly Job[]): Promise<void> {
    for (const job of jobs) {
      const end = endOf(job)
      if (end === undefined) await this.#updateRunning(job)
      else this.#updateEnded(job, end)
    }
    const { cache, client, signal } = this.#context
    for (const { uid, namespace = '', name = '' } of this.#status.active ?? []) {
      if (jobs.some(({ metadata }) => metadata.uid === uid) || cache.get(Jobs, `${namespace}/${name}`)) continue
      const isThere = await client.get(Jobs, { namespace, name }, { signal }).then(
        () => true,
        (error: unknown) => {
          if (!isNotFound(error)) throw error
          return false
        },
      )
      if (isThere) continue
      this.#record('Normal', 'MissingJob', `Active job went missing: ${name}`)
      this.#drop(uid)
    }
  }

  async #updateRunning(job: Job): Promise<void> {
    if (this.#isActive(job)) return
    const { client, signal } = this.#context
    const { namespace, name = '' } = this.#found.metadata
    // The cache may not have the status that was written with the Job.
    const fresh = await client.get(CronJobs, { namespace, name }, { signal })
    if (fresh.status.active?.some(({ uid }) => uid === job.metadata.uid)) {
      this.#status = fresh.status
      return
    }
    const message = `Saw a job that the controller did not create or forgot: ${job.metadata.name}`
    this.#record('Warning', 'UnexpectedJob', message)
  }

  #updateEnded(job: Job, end: string): void {
    if (this.#isActive(job)) {
      this.#drop(job.metadata.uid)
      this.#record('Normal', 'SawCompletedJob', `Saw completed job: ${job.metadata.name}, condition: ${end}`)
    }
    const { completionTime } = job.status
    const { lastSuccessfulTime } = this.#status
    if (end !== 'Complete' || completionTime === undefined) return
    if (lastSuccessfulTime === undefined || epochMsOf(completionTime) > epochMsOf(lastSuccessfulTime)) {
      this.#status = { ...this.#status, lastSuccessfulTime: completionTime }
    }
  }

  /** Starts a due Job; returns when the next one is due. */
  async start(): Promise<Requeue | undefined> {
    const { spec } = this.#found
    if (isBeingDeleted(this.#found) || !this.#isZoneKnown() || spec.suspend === true) return undefined
    const schedule = this.#schedule()
    if (schedule === undefined) return undefined
    const next = nextOf(schedule, this.#found)
    const nowMs = this.#context.clock.now()
    const dueMs = this.#dueMs(nowMs, next)
    if (dueMs === 'never') return undefined
    if (dueMs !== undefined && this.#mayStart(dueMs, nowMs)) {
      await this.#replace()
      if (!(await this.#create(dueMs))) return undefined
    }
    return { requeueAfterMs: waitMs(this.#cronJob, nowMs, next) }
  }

  #isZoneKnown(): boolean {
    const { timeZone } = this.#found.spec
    try {
      checkTimeZone(timeZone ?? '')
      return true
    } catch (error) {
      this.#record('Warning', 'UnknownTimeZone', `invalid timeZone: ${goQuote(timeZone ?? '')}: ${messageOf(error)}`)
      return false
    }
  }

  #schedule(): CronSchedule | undefined {
    const { schedule } = this.#found.spec
    if (schedule.includes('TZ')) {
      const message = `CRON_TZ or TZ used in schedule ${goQuote(schedule)} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details`
      this.#record('Warning', 'UnsupportedSchedule', message)
    }
    try {
      return parseCron(schedule)
    } catch (error) {
      const message = `unparseable schedule: ${goQuote(schedule)} : ${messageOf(error)}`
      this.#record('Warning', 'UnparseableSchedule', message)
      return undefined
    }
  }

  #dueMs(nowMs: number, next: Next): number | undefined | 'never' {
    try {
      const { latestMs, missed } = startsOf(this.#cronJob, nowMs, next, true)
      if (latestMs !== undefined && missed === 'many') {
        const advice = 'Set or decrease .spec.startingDeadlineSeconds or check clock skew'
        this.#record('Warning', 'TooManyMissedTimes', `too many missed start times. ${advice}`)
      }
      return latestMs
    } catch (error) {
      const { schedule } = this.#found.spec
      this.#record('Warning', 'InvalidSchedule', `invalid schedule: ${schedule} : ${messageOf(error)}`)
      return 'never'
    }
  }

  #mayStart(dueMs: number, nowMs: number): boolean {
    const { startingDeadlineSeconds = Infinity, concurrencyPolicy } = this.#found.spec
    const { active = [], lastScheduleTime } = this.#status
    if (dueMs + startingDeadlineSeconds * 1000 < nowMs) {
      this.#record('Warning', 'MissSchedule', `Missed scheduled time to start a job: ${mailTime(dueMs)}`)
      return false
    }
    if (active.some(({ name }) => name === this.#jobName(dueMs))) return false
    if (lastScheduleTime !== undefined && epochMsOf(lastScheduleTime) === dueMs) return false
    if (concurrencyPolicy !== 'Forbid' || active.length === 0) return true
    const message = 'Not starting job because prior execution is running and concurrency policy is Forbid'
    this.#record('Normal', 'JobAlreadyActive', message)
    return false
  }

  #jobName(dueMs: number): string {
    return `${this.#found.metadata.name}-${Math.floor(dueMs / 60_000)}`
  }

  async #replace(): Promise<void> {
    if (this.#found.spec.concurrencyPolicy !== 'Replace') return
    const { client, signal } = this.#context
    for (const { namespace, name = '' } of this.#status.active ?? []) {
      const job = await client.get(Jobs, { namespace, name }, { signal }).catch((error: unknown) => {
        this.#record('Warning', 'FailedGet', `Get job: ${messageOf(error)}`)
        throw error
      })
      if (!(await this.#delete(job))) throw new Error(`could not replace job ${namespace}/${name}`)
    }
  }

  async #delete({ metadata: { namespace, name = '', uid } }: Job): Promise<boolean> {
    const { client, signal } = this.#context
    try {
      await client.delete(Jobs, { namespace, name }, { signal, propagationPolicy: 'Background' })
    } catch (error) {
      this.#record('Warning', 'FailedDelete', `Deleted job: ${messageOf(error)}`)
      return false
    }
    this.#drop(uid)
    this.#record('Normal', 'SuccessfulDelete', `Deleted job ${name}`)
    return true
  }

  /** Returns false if the name belongs to another object, or the status is already written. */
  async #create(dueMs: number): Promise<boolean> {
    const { client, meters, signal } = this.#context
    const draft = this.#draft(dueMs)
    let job: Job
    try {
      job = await client.create(Jobs, draft, { signal })
      this.#record('Normal', 'SuccessfulCreate', `Created job ${job.metadata.name}`)
      const skew = meters.family('cronjob_controller_job_creation_skew_duration_seconds').labels()
      skew.observe((epochMsOf(job.metadata.creationTimestamp ?? '') - dueMs) / 1000)
    } catch (error) {
      if (!isAlreadyExists(error)) {
        if (!isNamespaceTerminating(error))
          this.#record('Warning', 'FailedCreate', `Error creating job: ${messageOf(error)}`)
        throw error
      }
      const { namespace, name = '' } = draft.metadata
      job = await client.get(Jobs, { namespace, name }, { signal })
      if (!isControlledBy(job, this.#found) || this.#isActive(job)) return false
    }
    const active = [...(this.#status.active ?? []), referenceTo(job)]
    this.#status = { ...this.#status, active, lastScheduleTime: timeOf(dueMs) }
    return true
  }

  #draft(dueMs: number): Pick<Job, 'metadata' | 'spec'> {
    const { metadata, spec } = this.#found
    const { labels, annotations } = spec.jobTemplate.metadata ?? {}
    return {
      metadata: {
        name: this.#jobName(dueMs),
        namespace: metadata.namespace ?? '',
        ...(labels !== undefined && { labels: { ...labels } }),
        annotations: { ...annotations, [SCHEDULED]: localTime(dueMs, spec.timeZone) },
        ownerReferences: [controllerRef(this.#found, CronJobs)],
      },
      spec: spec.jobTemplate.spec,
    }
  }

  /** Deletes finished Jobs beyond the history limits, the oldest first. */
  async forget(jobs: readonly Job[]): Promise<void> {
    const { successfulJobsHistoryLimit, failedJobsHistoryLimit } = this.#found.spec
    const limits = [
      ['Complete', successfulJobsHistoryLimit],
      ['Failed', failedJobsHistoryLimit],
    ] as const
    for (const [end, limit] of limits) {
      if (limit === undefined) continue
      const ended = jobs.filter((job) => endOf(job) === end && !isBeingDeleted(job)).sort(byStart)
      for (const job of ended.slice(0, Math.max(0, ended.length - limit))) await this.#delete(job)
    }
  }

  async write(): Promise<void> {
    if (semanticEqual(this.#found.status, this.#status)) return
    const { client, signal } = this.#context
    await client.updateStatus(CronJobs, this.#cronJob, { signal })
  }
}

function endOf({ status }: Job): string | undefined {
  const isEnd = (type: string): boolean => type === 'Complete' || type === 'Failed'
  return status.conditions?.find(({ type, status: value }) => isEnd(type) && value === 'True')?.type
}

function referenceTo({ metadata }: Job): ObjectReference {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata
  return { kind: 'Job', namespace, name, uid, apiVersion: 'batch/v1', resourceVersion }
}

/** Jobs without a start time come last. */
function byStart(a: Job, b: Job): number {
  const [left = '~', right = '~'] = [a.status.startTime, b.status.startTime]
  if (left !== right) return left < right ? -1 : 1
  return (a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1
}
