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
  job('Job with one completion', 'exit 0'),
  job('Job with parallelism and several completions', 'exit 0', { parallelism: 2, completions: 4 }),
  job('Job without completions ends after its first success', 'exit 0', { parallelism: 2 }),
  job('Job fails at backoffLimit', 'exit 1', { backoffLimit: 1 }),
  job('Job with backoffLimit 0 fails at its first failure', 'exit 1', { backoffLimit: 0 }),
  job('Job with completionMode Indexed', 'exit 0', { completionMode: 'Indexed', completions: 3, parallelism: 3 }),
  job('indexed Job with some failing indexes', 'by-index 1=1,2=1', {
    completionMode: 'Indexed',
    completions: 4,
    parallelism: 4,
    backoffLimitPerIndex: 0,
  }),
  // One after the other: what fails together may be seen together, or one by one with another index begun in between.
  job('indexed Job fails at maxFailedIndexes', 'by-index 0=1,1=1@2500,2=ready', {
    completionMode: 'Indexed',
    completions: 4,
    parallelism: 2,
    backoffLimitPerIndex: 0,
    maxFailedIndexes: 1,
  }),
  job('indexed Job retries an index', 'by-index 1=1', {
    completionMode: 'Indexed',
    completions: 2,
    parallelism: 2,
    backoffLimitPerIndex: 1,
  }),
  job('indexed Job with a success policy for one index', 'by-index 0=0@3000,1=1,2=1', {
    completionMode: 'Indexed',
    completions: 3,
    parallelism: 3,
    backoffLimit: 6,
    successPolicy: { rules: [{ succeededIndexes: '0' }] },
  }),
  job('indexed Job with a success policy for a number of indexes', 'by-index 1=ready,3=ready', {
    completionMode: 'Indexed',
    completions: 4,
    parallelism: 4,
    successPolicy: { rules: [{ succeededCount: 2 }] },
  }),
  job('Job with pod failure policy FailJob', 'exit 42', failurePolicy('FailJob')),
  job('indexed Job with pod failure policy FailIndex', 'by-index 0=42', {
    completionMode: 'Indexed',
    completions: 2,
    parallelism: 2,
    backoffLimitPerIndex: 2,
    ...failurePolicy('FailIndex'),
  }),
  job('Job with pod failure policy Count', 'exit 42', { backoffLimit: 0, ...failurePolicy('Count') }),
  {
    name: 'Job with pod failure policy Ignore for an exit code',
    async run(act) {
      await act.make(Jobs, 'once', {
        spec: { template: template('exit 42'), backoffLimit: 0, ...failurePolicy('Ignore') },
      })
      await act.wait(8000)
    },
  },
  {
    name: 'Job with pod failure policy Ignore for evicted pods',
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
    name: 'Job with podReplacementPolicy Failed',
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
    name: 'Job fails at activeDeadlineSeconds',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('ready'), activeDeadlineSeconds: 2 } })
      await act.until(Jobs, 'once', hasEnded)
    },
  },
  {
    name: 'Job is suspended and resumed',
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
    name: 'Job with changing parallelism',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('ready'), parallelism: 1, completions: 6 } })
      for (const parallelism of [4, 2]) {
        await act.change(Jobs, 'once', { spec: { parallelism } })
        await act.until(Jobs, 'once', ({ status }) => status?.ready === parallelism)
      }
    },
  },
  {
    name: 'indexed Job with changing completions',
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
    name: 'Job is deleted after ttlSecondsAfterFinished',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('exit 0'), ttlSecondsAfterFinished: 2 } })
      await act.until(Jobs, 'once', hasEnded)
      await act.gone(Jobs, 'once')
    },
  },
  {
    name: 'Job replaces a deleted pod',
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
    name: 'Job with another managedBy is ignored',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('exit 0'), managedBy: 'example.com/other' } })
      await act.wait(2000)
    },
  },
  {
    name: 'Job deleted with orphaning leaves its pods',
    async run(act) {
      await act.make(Jobs, 'once', { spec: { template: template('ready') } })
      await act.until(Jobs, 'once', ({ status }) => status?.ready === 1)
      await act.remove(Jobs, 'once', { propagationPolicy: 'Orphan' })
      await act.gone(Jobs, 'once')
      await act.wait(1500)
    },
  },
  {
    name: 'CronJob starts a Job each minute',
    async run(act) {
      await act.make(CronJobs, 'often', cron('Allow', { timeZone: 'Europe/Berlin' }))
      await untilJobs(act, 1)
      await act.until(CronJobs, 'often', ({ status }) => status?.lastSuccessfulTime !== undefined)
      await act.change(CronJobs, 'often', { spec: { suspend: true } })
    },
  },
  {
    name: 'CronJobs with concurrencyPolicy Forbid and Replace',
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
    name: 'suspended CronJob starts no Job',
    async run(act) {
      await act.make(CronJobs, 'never', cron('Allow', { suspend: true }))
      await act.wait(3000)
    },
  },
  {
    name: 'CronJobs at a change of daylight saving time',
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
    name: 'CronJobs report too many missed times and a missed starting deadline',
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
    name: 'CronJobs with an invalid schedule or time zone',
    async run(act) {
      await act.make(CronJobs, 'zoned', cron('Allow', { schedule: 'TZ=UTC 0 0 1 1 *' })).catch((error: unknown) => {
        act.lost.push(String(error))
      })
      await act.make(CronJobs, 'rare', cron('Allow', { schedule: '0 0 30 2 *', timeZone: 'Asia/Tokyo' }))
      await act.wait(3000)
    },
  },
]
