/** Scenarios of Jobs and CronJobs: counting, indexes, failures and failure policies, suspension, schedules. */
import { CronJobs, type Job, Jobs } from '#apis/batch/v1.ts'
import { Pods } from '#apis/core/v1.ts'

import type { Act, Scenario } from './scenario.ts'

const template = (fate: string, pod: object = {}, afterMs = '300'): object => ({
  metadata: { annotations: { 'stand-in/fate': fate, 'stand-in/after-ms': afterMs } },
  spec: {
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 1,
    containers: [{ name: 'c', image: 'i' }],
    ...pod,
  },
})

const hasEnded = ({ status }: Job): boolean =>
  (status?.conditions ?? []).some(({ type, status: is }) => ['Complete', 'Failed'].includes(type) && is === 'True')

function job(name: string, fate: string, spec: object = {}): Scenario {
  return {
    name,
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template(fate), ...spec } })
      await act.until(Jobs, 'once', hasEnded)
    },
  }
}

const failurePolicy = (action: string, more: object = {}): object => ({
  podFailurePolicy: {
    rules: [{ action, onExitCodes: { containerName: 'c', operator: 'In', values: [42] } }],
    ...more,
  },
})

const cron = (concurrencyPolicy: string, more: object = {}): object => ({
  spec: {
    schedule: '* * * * *',
    concurrencyPolicy,
    jobTemplate: { spec: { template: template('exit 0', {}, '500') } },
    ...more,
  },
})

async function untilJobs(act: Act, count: number): Promise<void> {
  await act.untilAll(Jobs, (jobs) => jobs.length >= count)
}

export const JOBS: readonly Scenario[] = [
  job('a Job runs once', 'exit 0'),
  job('a Job runs several at a time until enough have succeeded', 'exit 0', { parallelism: 2, completions: 4 }),
  job('a Job whose first success is enough', 'exit 0', { parallelism: 2 }),
  job('a Job that fails too often', 'exit 1', { backoffLimit: 1 }),
  job('a Job that fails at once', 'exit 1', { backoffLimit: 0 }),
  job('a Job with indexes', 'exit 0', { completionMode: 'Indexed', completions: 3, parallelism: 3 }),
  job('a Job with indexes of which some fail', 'by-index 1=1,2=1', {
    completionMode: 'Indexed',
    completions: 4,
    parallelism: 4,
    backoffLimitPerIndex: 0,
  }),
  // One after the other: what fails together may be seen together, or one by one with another index begun in between.
  job('a Job with more failed indexes than it may have', 'by-index 0=1,1=1@2500,2=ready', {
    completionMode: 'Indexed',
    completions: 4,
    parallelism: 2,
    backoffLimitPerIndex: 0,
    maxFailedIndexes: 1,
  }),
  job('a Job with an index that is tried again', 'by-index 1=1', {
    completionMode: 'Indexed',
    completions: 2,
    parallelism: 2,
    backoffLimitPerIndex: 1,
  }),
  job('a Job that ends when one index has succeeded', 'by-index 0=0@3000,1=1,2=1', {
    completionMode: 'Indexed',
    completions: 3,
    parallelism: 3,
    backoffLimit: 6,
    successPolicy: { rules: [{ succeededIndexes: '0' }] },
  }),
  job('a Job that ends when enough indexes have succeeded', 'by-index 1=ready,3=ready', {
    completionMode: 'Indexed',
    completions: 4,
    parallelism: 4,
    successPolicy: { rules: [{ succeededCount: 2 }] },
  }),
  job('a Job whose policy fails it for an exit code', 'exit 42', failurePolicy('FailJob')),
  job('a Job whose policy fails an index for an exit code', 'by-index 0=42', {
    completionMode: 'Indexed',
    completions: 2,
    parallelism: 2,
    backoffLimitPerIndex: 2,
    ...failurePolicy('FailIndex'),
  }),
  job('a Job whose policy counts an exit code', 'exit 42', { backoffLimit: 0, ...failurePolicy('Count') }),
  {
    name: 'a Job whose policy ignores an exit code',
    async run(act) {
      await act.make(Jobs, 'once', {
        spec: { template: template('exit 42'), backoffLimit: 0, ...failurePolicy('Ignore') },
      })
      await act.wait(8000)
    },
  },
  {
    name: 'a Job whose policy ignores pods that were evicted',
    async run(act) {
      const podFailurePolicy = { rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget' }] }] }
      await act.make(Jobs, 'once', { spec: { template: template('ready'), backoffLimit: 0, podFailurePolicy } })
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
      const [pod] = await act.list(Pods)
      const name = pod?.metadata.name ?? ''
      const eviction = { kind: 'Eviction', apiVersion: 'policy/v1', metadata: { namespace: act.ns, name } }
      await act.client.create(Pods, eviction, { subresource: 'eviction' })
      await act.gone(Pods, name)
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
    },
  },
  {
    name: 'a Job replaces pods only when they have ended',
    async run(act) {
      const slow = template('ready', { terminationGracePeriodSeconds: 5 }) as { metadata: { annotations: object } }
      const annotations = { ...slow.metadata.annotations, 'stand-in/stop-ms': '2500' }
      const spec = { template: { ...slow, metadata: { annotations } }, podReplacementPolicy: 'Failed', backoffLimit: 3 }
      await act.make(Jobs, 'once', { spec })
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
      const [pod] = await act.list(Pods)
      await act.remove(Pods, pod?.metadata.name ?? '')
      await act.until(Jobs, 'once', ({ status }) => status?.terminating === 1)
      await act.gone(Pods, pod?.metadata.name ?? '')
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
    },
  },
  {
    name: 'a Job that takes longer than it may',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('ready'), activeDeadlineSeconds: 2 } })
      await act.until(Jobs, 'once', hasEnded)
    },
  },
  {
    name: 'a Job is suspended and resumed',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('ready'), parallelism: 2, suspend: true } })
      await act.wait(1500)
      await act.change(Jobs, 'once', { spec: { suspend: false } })
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 2)
      await act.change(Jobs, 'once', { spec: { suspend: true } })
      await act.untilAll(Pods, (pods) => pods.length === 0)
      await act.wait(2500)
    },
  },
  {
    name: 'a Job is given more and less to do at a time',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('ready'), parallelism: 1, completions: 6 } })
      for (const parallelism of [4, 2]) {
        await act.change(Jobs, 'once', { spec: { parallelism } })
        await act.until(Jobs, 'once', ({ status }) => status?.ready === parallelism)
      }
    },
  },
  {
    name: 'a Job with indexes grows and shrinks',
    async run(act) {
      const indexed = { completionMode: 'Indexed', completions: 2, parallelism: 2 }
      await act.make(Jobs, 'once', { spec: { template: template('ready'), ...indexed } })
      for (const count of [4, 1]) {
        await act.until(Jobs, 'once', ({ spec, status }) => status?.ready === spec?.parallelism)
        await act.change(Jobs, 'once', { spec: { parallelism: count, completions: count } })
      }
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
    },
  },
  {
    name: 'a Job goes some time after it has ended',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('exit 0'), ttlSecondsAfterFinished: 2 } })
      await act.until(Jobs, 'once', hasEnded)
      await act.gone(Jobs, 'once')
    },
  },
  {
    name: 'a Job whose pod is deleted starts another',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('ready'), backoffLimit: 3 } })
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
      const [pod] = await act.list(Pods)
      await act.remove(Pods, pod?.metadata.name ?? '')
      await act.gone(Pods, pod?.metadata.name ?? '')
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
    },
  },
  {
    name: 'a Job that somebody else manages is left alone',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('exit 0'), managedBy: 'example.com/other' } })
      await act.wait(2000)
    },
  },
  {
    name: 'a Job that is orphaned leaves its pods',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('ready') } })
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
      await act.remove(Jobs, 'once', { propagationPolicy: 'Orphan' })
      await act.gone(Jobs, 'once')
      await act.wait(1500)
    },
  },
  {
    name: 'a CronJob starts a Job a minute',
    async run(act) {
      await act.make(CronJobs, 'often', cron('Allow', { timeZone: 'Europe/Berlin' }))
      await untilJobs(act, 1)
      await act.until(CronJobs, 'often', ({ status }) => status?.lastSuccessfulTime !== undefined)
      await act.change(CronJobs, 'often', { spec: { suspend: true } })
    },
  },
  {
    name: 'a CronJob forbids a second Job, and another replaces the first',
    allows: [
      {
        line: /^- CronJob replaces Normal MissingJob /,
        why: "upstream's sometimes syncs before its cache has the Job that it has just created",
      },
    ],
    async run(act) {
      const long = { jobTemplate: { spec: { template: template('ready') } } }
      await act.make(CronJobs, 'forbids', cron('Forbid', long))
      await act.make(CronJobs, 'replaces', cron('Replace', long))
      await untilJobs(act, 2)
      await act.wait(61_000)
      for (const name of ['forbids', 'replaces']) await act.change(CronJobs, name, { spec: { suspend: true } })
    },
  },
  {
    name: 'a CronJob that is suspended does nothing',
    async run(act) {
      await act.make(CronJobs, 'never', cron('Allow', { suspend: true }))
      await act.wait(3000)
    },
  },
  {
    name: 'CronJobs that missed an hour which a clock skips or repeats',
    async run(act) {
      // Once a year, where clocks change at two: the hour before comes twice in November, the one after not at all in March.
      const times = { repeated: '30 1 1 11 *', skipped: '30 2 8 3 *', utc: 'TZ-less' }
      for (const [name, schedule] of Object.entries(times)) {
        const zone =
          name === 'utc' ? { schedule: '30 1 1 11 *', timeZone: 'Etc/UTC' } : { schedule, timeZone: 'America/New_York' }
        await act.make(CronJobs, name, cron('Allow', { ...zone, suspend: true }))
        await act.change(CronJobs, name, { status: { lastScheduleTime: '2026-01-01T00:00:00Z' } }, 'status')
        await act.change(CronJobs, name, { spec: { suspend: false } })
      }
      await untilJobs(act, 2)
      await act.wait(4000)
      for (const { metadata } of await act.list(Jobs)) {
        const at = metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp']
        act.lost.push(`${metadata.name} at ${at?.replace(/[TZ]/g, ' ')}`)
      }
    },
  },
  {
    name: 'CronJobs that missed too much, or are too late, say so',
    async run(act) {
      const missed = { many: {}, late: { startingDeadlineSeconds: 20, schedule: '0 0 1 1 *' } }
      for (const [name, more] of Object.entries(missed)) {
        await act.make(CronJobs, name, cron('Allow', { ...more, suspend: true }))
        await act.change(CronJobs, name, { status: { lastScheduleTime: '2026-10-01T00:00:00Z' } }, 'status')
        await act.change(CronJobs, name, { spec: { suspend: false } })
      }
      await untilJobs(act, 1)
      await act.change(CronJobs, 'many', { spec: { suspend: true } })
      await act.until(CronJobs, 'many', ({ status }) => status?.lastSuccessfulTime !== undefined)
    },
  },
  {
    name: 'a CronJob with a schedule or a time zone that is not one',
    async run(act) {
      await act.make(CronJobs, 'zoned', cron('Allow', { schedule: 'TZ=UTC 0 0 1 1 *' })).catch((error: unknown) => {
        act.lost.push(String(error))
      })
      await act.make(CronJobs, 'rare', cron('Allow', { schedule: '0 0 30 2 *', timeZone: 'Asia/Tokyo' }))
      await act.wait(3000)
    },
  },
]
