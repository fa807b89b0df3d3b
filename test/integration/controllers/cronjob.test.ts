/**
 * Tests the CronJob controller on a complete API server with a virtual clock, with the Job controller and a fake
 * kubelet.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { type CronJob, CronJobs, type CronJobSpec, type Job, Jobs } from '#apis/batch/v1.ts'
import { cronJobController } from '#controllers/workloads/cronjob/controller.ts'
import { jobController } from '#controllers/workloads/job/controller.ts'

import { type Bench, namespace, startBench } from './workload-bench.ts'

const name = 'plain'
const where = { namespace, name }
/** 10:14:30, half a minute before a start. */
const BEGIN = Date.UTC(2026, 10, 15, 10, 14, 30)

let bench: Bench

beforeEach(async () => {
  bench = await startBench([cronJobController, jobController], BEGIN)
  bench.kubelet.fate = () => ({ exitCode: 0 })
})

afterEach(() => bench.stop())

async function create(spec: Partial<CronJobSpec>): Promise<void> {
  const pod = { restartPolicy: 'Never', containers: [{ name: 'c', image: 'img:1', resources: {} }] }
  const jobTemplate = {
    metadata: { labels: { from: 'cron' } },
    spec: { backoffLimit: 0, template: { metadata: {}, spec: pod } },
  }
  await bench.client.create(CronJobs, {
    metadata: { namespace, name },
    spec: { schedule: '* * * * *', jobTemplate, ...spec },
  })
}

const get = (): Promise<CronJob> => bench.client.get(CronJobs, where)
const jobs = async (): Promise<Job[]> => (await bench.client.list(Jobs, { namespace })).items
const names = async (): Promise<string[]> => (await jobs()).map(({ metadata }) => metadata.name ?? '')

describe('CronJob controller', () => {
  it('creates a Job on schedule, named by the minute, and records its end', async () => {
    await create({ schedule: '15 * * * *', timeZone: 'Europe/Berlin' })
    await bench.settle(29_000)
    assert.deepEqual(await names(), [])
    await bench.settle(2000)
    const [job] = await jobs()
    assert.equal(job?.metadata.name, 'plain-29912295')
    assert.deepEqual(job.metadata.labels?.['from'], 'cron')
    assert.equal(
      job.metadata.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'],
      '2026-11-15T11:15:00+01:00',
    )
    const { status } = await get()
    assert.equal(status.lastScheduleTime, '2026-11-15T10:15:00Z')
    await bench.settle(20_000)
    const after = (await get()).status
    assert.equal(after.active, undefined)
    assert.ok(after.lastSuccessfulTime !== undefined)
    assert.deepEqual(await bench.events('CronJob'), [
      'SuccessfulCreate: Created job plain-29912295',
      'SawCompletedJob: Saw completed job: plain-29912295, condition: Complete',
    ])
  })

  it('keeps the last three successful Jobs', async () => {
    await create({})
    await bench.settle(330_000)
    assert.equal((await jobs()).length, 3)
    assert.ok((await bench.events('CronJob')).includes('SuccessfulDelete: Deleted job plain-29912295'))
  })

  it('starts no concurrent Job with concurrencyPolicy Forbid', async () => {
    bench.kubelet.fate = () => 'ready'
    await create({ concurrencyPolicy: 'Forbid' })
    await bench.settle(100_000)
    assert.deepEqual(await names(), ['plain-29912295'])
    assert.ok(
      (await bench.events('CronJob')).includes(
        'JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid',
      ),
    )
    assert.equal((await get()).status.lastScheduleTime, '2026-11-15T10:15:00Z')
  })

  it('replaces the running Job with concurrencyPolicy Replace', async () => {
    bench.kubelet.fate = () => 'ready'
    await create({ concurrencyPolicy: 'Replace' })
    await bench.settle(100_000)
    assert.deepEqual(await names(), ['plain-29912296'])
    assert.deepEqual(
      (await get()).status.active?.map((reference) => reference.name),
      ['plain-29912296'],
    )
  })

  it('starts the latest missed Job, and warns after many missed ones', async () => {
    await create({ suspend: true })
    await bench.clock.advance(3 * 3_600_000)
    assert.deepEqual(await names(), [])
    await bench.client.patch(CronJobs, where, { type: 'merge', value: { spec: { suspend: false } } })
    await bench.settle(1000)
    assert.deepEqual(await names(), ['plain-29912474'])
    assert.ok(
      (await bench.events('CronJob')).includes(
        'TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew',
      ),
    )
  })

  it('reports a schedule that never fires', async () => {
    await create({ schedule: '0 0 30 2 *' })
    await bench.settle(1000)
    assert.deepEqual(await bench.events('CronJob'), [
      'InvalidSchedule: invalid schedule: 0 0 30 2 * : time difference between two schedules is less than 1 second',
    ])
  })
})
