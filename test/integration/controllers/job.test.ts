/** Tests the Job controller on a complete API server with a virtual clock, with a fake kubelet. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import fc from 'fast-check'

import { type Job, Jobs, type JobSpec } from '#apis/batch/v1.ts'
import { type Pod, Pods } from '#apis/core/v1.ts'
import { jobController } from '#controllers/workloads/job/controller.ts'
import { ttlAfterFinishedController } from '#controllers/workloads/ttl-after-finished.ts'
import { epochMsOf } from '#meta/time.ts'
import { isActive } from '#model/pods.ts'

import { type Bench, namespace, startBench } from './workload-bench.ts'

const name = 'j'
const where = { namespace, name }
const INDEX = 'batch.kubernetes.io/job-completion-index'

let bench: Bench

beforeEach(async () => {
  bench = await startBench([jobController, ttlAfterFinishedController])
  bench.kubelet.delayMs = 1000
  bench.kubelet.fate = () => ({ exitCode: 0 })
})

afterEach(() => bench.stop())

async function create(spec: Partial<JobSpec>, pod: object = {}): Promise<void> {
  const containers = [{ name: 'c', image: 'img:1', resources: {} }]
  const template = {
    metadata: {},
    spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 1, containers, ...pod },
  }
  await bench.client.create(Jobs, { metadata: { namespace, name }, spec: { template, ...spec } })
}

const change = (spec: object): Promise<unknown> => bench.client.patch(Jobs, where, { type: 'merge', value: { spec } })
const get = (): Promise<Job> => bench.client.get(Jobs, where)
const pods = async (): Promise<Pod[]> => (await bench.client.list(Pods, { namespace })).items
const conditions = async (): Promise<string[]> =>
  ((await get()).status.conditions ?? []).map(
    ({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`,
  )
const events = async (): Promise<string[]> =>
  (await bench.events('Job')).filter((text) => !text.startsWith('SuccessfulCreate'))

describe('Job controller', () => {
  it('runs pods until enough succeed, counts each once, and completes in two steps', async () => {
    await create({ completions: 5, parallelism: 2 })
    await bench.settle(500)
    const begun = (await get()).status
    assert.deepEqual(begun, {
      startTime: begun.startTime,
      active: 2,
      terminating: 0,
      uncountedTerminatedPods: {},
      ready: 0,
    })
    const [pod] = await pods()
    assert.match(pod?.metadata.name ?? '', /^j-[a-z0-9]{5}$/)
    assert.deepEqual(pod?.metadata.finalizers, ['batch.kubernetes.io/job-tracking'])
    await bench.settle(20_000)
    const { status } = await get()
    assert.deepEqual([status.succeeded, status.active, status.failed], [5, undefined, undefined])
    assert.deepEqual(status.uncountedTerminatedPods, {})
    assert.ok(status.completionTime !== undefined)
    assert.deepEqual(await conditions(), [
      'SuccessCriteriaMet True CompletionsReached: Reached expected number of succeeded pods',
      'Complete True CompletionsReached: Reached expected number of succeeded pods',
    ])
    assert.deepEqual(await events(), ['Completed: Job completed'])
    assert.ok((await pods()).every(({ metadata }) => metadata.finalizers === undefined))
  })

  it('creates pods with backoff after each failure, and fails at backoffLimit', async () => {
    bench.kubelet.fate = () => ({ exitCode: 1 })
    await create({ backoffLimit: 2 })
    await bench.settle(120_000)
    const startMs = epochMsOf((await get()).status.startTime ?? '')
    const begun = (await pods()).map(({ metadata }) => (epochMsOf(metadata.creationTimestamp ?? '') - startMs) / 1000)
    const [first, second = 0, third = 0] = begun.sort((a, b) => a - b)
    assert.deepEqual([begun.length, first], [3, 0])
    assert.ok(second >= 11 && second <= 13 && third - second >= 21 && third - second <= 24, begun.join())
    assert.equal((await get()).status.failed, 3)
    assert.deepEqual(await conditions(), [
      'FailureTarget True BackoffLimitExceeded: Job has reached the specified backoff limit',
      'Failed True BackoffLimitExceeded: Job has reached the specified backoff limit',
    ])
    assert.deepEqual(await events(), ['BackoffLimitExceeded: Job has reached the specified backoff limit'])
  })

  it('gives each index a pod, a hostname and an environment variable', async () => {
    await create({ completions: 4, parallelism: 3, completionMode: 'Indexed' })
    await bench.settle(500)
    const [pod] = await pods()
    assert.match(pod?.metadata.name ?? '', /^j-0-[a-z0-9]{5}$/)
    assert.deepEqual(
      [pod?.metadata.labels?.[INDEX], pod?.metadata.annotations?.[INDEX], pod?.spec.hostname],
      ['0', '0', 'j-0'],
    )
    assert.deepEqual(pod?.spec.containers?.[0]?.env, [
      {
        name: 'JOB_COMPLETION_INDEX',
        valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: `metadata.labels['${INDEX}']` } },
      },
    ])
    await bench.settle(20_000)
    const { completedIndexes, succeeded } = (await get()).status
    assert.deepEqual([completedIndexes, succeeded], ['0-3', 4])
  })

  it('fails single indexes with backoffLimitPerIndex', async () => {
    bench.kubelet.fate = ({ metadata }) => ({ exitCode: metadata.annotations?.[INDEX] === '1' ? 1 : 0 })
    await create({ completions: 3, parallelism: 3, completionMode: 'Indexed', backoffLimitPerIndex: 1 })
    await bench.settle(60_000)
    const { completedIndexes, failedIndexes, failed } = (await get()).status
    assert.deepEqual([completedIndexes, failedIndexes, failed], ['0,2', '1', 2])
    assert.deepEqual((await conditions()).at(-1), 'Failed True FailedIndexes: Job has failed indexes')
    const counts = (await pods()).map(
      ({ metadata }) => metadata.annotations?.['batch.kubernetes.io/job-index-failure-count'],
    )
    assert.deepEqual(
      counts.map(Number).sort((a, b) => a - b),
      [0, 0, 0, 1],
    )
  })

  it('succeeds by its success policy, and deletes the remaining pods', async () => {
    bench.kubelet.fate = ({ metadata }) => (metadata.annotations?.[INDEX] === '0' ? { exitCode: 0 } : 'ready')
    const successPolicy = { rules: [{ succeededIndexes: '0' }] }
    await create({ completions: 3, parallelism: 3, completionMode: 'Indexed', successPolicy })
    await bench.settle(20_000)
    assert.deepEqual(await conditions(), [
      'SuccessCriteriaMet True SuccessPolicy: Matched rules at index 0',
      'Complete True SuccessPolicy: Matched rules at index 0',
    ])
    assert.deepEqual((await pods()).filter(isActive), [])
    assert.equal((await get()).status.failed, undefined)
  })

  it('fails, ignores or counts failures by its pod failure policy', async () => {
    let exitCode = 7
    bench.kubelet.fate = () => ({ exitCode })
    const rules = [
      { action: 'Ignore', onExitCodes: { operator: 'In', values: [7] } },
      { action: 'FailJob', onExitCodes: { operator: 'In', values: [42] } },
    ]
    await create({ backoffLimit: 0, podFailurePolicy: { rules } })
    await bench.settle(5000)
    assert.deepEqual([(await get()).status.failed, await conditions()], [undefined, []])
    exitCode = 42
    await bench.settle(30_000)
    assert.match(
      (await conditions()).at(-1) ?? '',
      /^Failed True PodFailurePolicy: Container c for pod default\/j-.{5} failed with exit code 42 matching FailJob rule at index 1$/,
    )
  })

  it('fails at activeDeadlineSeconds', async () => {
    bench.kubelet.fate = () => 'ready'
    await create({ activeDeadlineSeconds: 30, parallelism: 2, completions: 2 })
    await bench.settle(40_000)
    assert.deepEqual(
      (await conditions()).at(-1),
      'Failed True DeadlineExceeded: Job was active longer than specified deadline',
    )
    assert.deepEqual((await pods()).filter(isActive), [])
  })

  it('deletes its pods while it is suspended, and starts them again afterwards', async () => {
    bench.kubelet.fate = () => 'ready'
    await create({ completions: 2, parallelism: 2 })
    await bench.settle()
    await change({ suspend: true })
    await bench.settle(10_000)
    const { status } = await get()
    assert.deepEqual(await pods(), [])
    assert.deepEqual([status.startTime, status.failed, status.active], [undefined, undefined, undefined])
    assert.deepEqual(await conditions(), ['Suspended True JobSuspended: Job suspended'])
    await change({ suspend: false })
    await bench.settle(10_000)
    assert.deepEqual(await conditions(), ['Suspended False JobResumed: Job resumed'])
    assert.equal((await pods()).length, 2)
    const told = await events()
    assert.ok(told.includes('Suspended: Job suspended') && told.includes('Resumed: Job resumed'))
  })

  it('ignores Jobs with another managedBy, and releases pods of a deleted Job', async () => {
    await create({ managedBy: 'example.com/other' })
    await bench.settle()
    assert.deepEqual((await get()).status, {})
    await bench.client.delete(Jobs, where, { propagationPolicy: 'Background' })
    bench.kubelet.fate = () => 'ready'
    await create({})
    await bench.settle()
    await bench.client.delete(Jobs, where, { propagationPolicy: 'Background' })
    await bench.settle()
    assert.ok((await pods()).every(({ metadata }) => metadata.finalizers === undefined))
  })

  it('deletes a Job after ttlSecondsAfterFinished', async () => {
    await create({ ttlSecondsAfterFinished: 60 })
    await bench.settle(30_000)
    assert.ok((await conditions()).length === 2)
    await bench.settle(60_000)
    const left = (await bench.client.list(Jobs, { namespace })).items
    assert.ok(left.every(({ metadata }) => metadata.finalizers?.includes('foregroundDeletion')))
  })

  it('never exceeds the parallelism, and counts every success once', async () => {
    const seeds = fc.record({
      completions: fc.integer({ min: 1, max: 6 }),
      parallelism: fc.integer({ min: 1, max: 4 }),
      failing: fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 3 }),
      indexed: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(seeds, async ({ completions, parallelism, failing, indexed }) => {
        let asked = 0
        const fates = new Map<string, number>()
        bench.kubelet.fate = ({ metadata: { uid = '' } }) => {
          if (!fates.has(uid)) fates.set(uid, failing.includes(asked++) ? 1 : 0)
          return { exitCode: fates.get(uid) ?? 0 }
        }
        await create({ completions, parallelism, completionMode: indexed ? 'Indexed' : 'NonIndexed' })
        for (let round = 0; round < 600; round++) {
          await bench.clock.advance(300)
          const active = (await pods()).filter(isActive)
          assert.ok(active.length <= Math.min(parallelism, completions), `${active.length} at work`)
        }
        const { status } = await get()
        assert.equal(status.succeeded, completions)
        assert.equal((await pods()).filter((pod) => pod.status.phase === 'Succeeded').length, completions)
        await bench.client.delete(Jobs, where, { propagationPolicy: 'Background' })
        await bench.client.deleteCollection(Pods, { namespace }, { gracePeriodSeconds: 0 })
        await bench.settle()
      }),
      { numRuns: 5 },
    )
  })
})
