/**
 * Tests invariants of controllers on a complete API server with a virtual clock. Writes fail before or after they take
 * effect, and the manager restarts at random moments.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { Deployments, StatefulSets } from '#apis/apps/v1.ts'
import { Jobs } from '#apis/batch/v1.ts'
import { ConfigMaps, type Pod, Pods } from '#apis/core/v1.ts'
import type { Transport } from '#client/api-client.ts'
import { garbageCollectorController } from '#controllers/objects/garbage-collector/controller.ts'
import { deploymentController } from '#controllers/workloads/deployment/controller.ts'
import { jobController } from '#controllers/workloads/job/controller.ts'
import { replicaSetController } from '#controllers/workloads/replicaset.ts'
import { statefulSetController } from '#controllers/workloads/statefulset/controller.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, sleep, type VirtualClock } from '#lib/clock.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'
import { StatusError, type StatusReason } from '#meta/status.ts'
import { isActive, isReady } from '#model/pods.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { createFakeKubelet } from './fake-kubelet.ts'

const namespace = 'default'
const [REPLICAS, SURGE, UNAVAILABLE] = [4, 1, 1]
const PARALLELISM = 2
const CONTROLLERS = [
  deploymentController,
  replicaSetController,
  statefulSetController,
  jobController,
  garbageCollectorController,
]
const quiet = { error: () => undefined, info: () => undefined, v: () => undefined } as never

/** How often a write fails while there are faults. */
const FAULTS = 0.25
/** And how long one takes that is slow. */
const SLOW_MS = 1500

const refused = (code: number, reason: StatusReason, message: string): StatusError =>
  new StatusError({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason, message })

const FAILURES = [
  () => refused(409, 'Conflict', 'somebody was faster'),
  () => refused(500, 'InternalError', 'it broke'),
  () => refused(504, 'Timeout', 'it took too long'),
  () => new Error('the connection was lost'),
]

/** A cluster whose manager meets faults while `isFaulty`, and can be ended and begun again. */
class Cluster implements AsyncDisposable {
  readonly clock: VirtualClock
  readonly #plane: ControlPlane
  readonly #kubelet: RunningControllers
  readonly #random: Random
  #manager: RunningControllers
  isFaulty = false

  private constructor(clock: VirtualClock, plane: ControlPlane, seed: number) {
    this.clock = clock
    this.#plane = plane
    this.#random = createSeededRandom(seed)
    const kubelet = createFakeKubelet()
    kubelet.delayMs = 500
    kubelet.fate = ({ metadata }) => (metadata.labels?.['app'] === 'job' ? { exitCode: 0 } : 'ready')
    this.#kubelet = startControllers(plane, clock, [kubelet], { log: quiet })
    this.#manager = this.#start()
  }

  static async start(seed: number): Promise<Cluster> {
    const clock = createVirtualClock(Date.UTC(2026, 0, 1))
    const plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
    return new Cluster(clock, plane, seed)
  }

  get client(): RunningControllers['client'] {
    return this.#kubelet.client
  }

  #start(): RunningControllers {
    const through = (transport: Transport): Transport => ({ request: (request) => this.#send(transport, request) })
    return startControllers(this.#plane, this.clock, CONTROLLERS, { through, log: quiet })
  }

  async #send(transport: Transport, request: Parameters<Transport['request']>[0]): ReturnType<Transport['request']> {
    const isHit = this.isFaulty && (request.method ?? 'GET') !== 'GET' && this.#random.float() < FAULTS
    if (!isHit) return transport.request(request)
    const at = Math.floor(this.#random.float() * FAILURES.length)
    const isDone = this.#random.float() < 0.5
    if (isDone && at === 0) {
      await sleep(this.clock, SLOW_MS, request.signal)
      return transport.request(request)
    }
    // A write that takes effect never gets the 409, only another failure.
    if (isDone) (await transport.request(request)).discard()
    throw FAILURES[at]?.() ?? new Error('unreachable')
  }

  async restart(): Promise<void> {
    await this.#manager.stop()
    this.#manager = this.#start()
  }

  async pods(app: string): Promise<Pod[]> {
    return (await this.client.list(Pods, { namespace, labelSelector: `app=${app}` })).items
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#manager.stop()
    await this.#kubelet.stop()
    await this.#plane.stop()
  }
}

const template = (app: string, image: string, more: object = {}): object => ({
  metadata: { labels: { app } },
  spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'c', image }], ...more },
})

async function fill({ client }: Cluster): Promise<void> {
  const metadata = (name: string): { namespace: string; name: string } => ({ namespace, name })
  const selector = (app: string): object => ({ matchLabels: { app } })
  const rollingUpdate = { maxSurge: SURGE, maxUnavailable: UNAVAILABLE }
  const web = { replicas: REPLICAS, selector: selector('web'), template: template('web', 'img:0') }
  await client.create(Deployments, {
    metadata: metadata('web'),
    spec: { ...web, strategy: { rollingUpdate } },
  } as never)
  const set = { replicas: 3, serviceName: 's', selector: selector('set'), template: template('set', 'img:0') }
  await client.create(StatefulSets, { metadata: metadata('set'), spec: set } as never)
  for (const name of ['kept', 'gone']) {
    const { metadata: made } = await client.create(ConfigMaps, { metadata: metadata(name) })
    const reference = { apiVersion: 'v1', kind: 'ConfigMap', name, uid: made.uid ?? '' }
    for (const at of [1, 2, 3])
      await client.create(ConfigMaps, { metadata: { ...metadata(`${name}-${at}`), ownerReferences: [reference] } })
  }
}

/** Executes a random change. `job` is the number of the next Job. */
async function change({ client }: Cluster, step: number, job: number): Promise<void> {
  const merge = (value: object) => ({ type: 'merge', value }) as const
  if (step % 4 === 0) {
    const value = merge({ spec: { template: template('web', `img:${job}`) } })
    await client.patch(Deployments, { namespace, name: 'web' }, value)
  } else if (step % 4 === 1) {
    await client.patch(StatefulSets, { namespace, name: 'set' }, merge({ spec: { replicas: 1 + (job % 3) } }))
  } else if (step % 4 === 2) {
    const spec = {
      parallelism: PARALLELISM,
      completions: 4,
      template: template('job', 'i', { restartPolicy: 'Never' }),
    }
    await client.create(Jobs, { metadata: { namespace, name: `job-${job}` }, spec } as never)
  } else
    await client.patch(
      StatefulSets,
      { namespace, name: 'set' },
      merge({ spec: { template: template('set', `img:${job}`) } }),
    )
}

async function check(cluster: Cluster): Promise<void> {
  const web = (await cluster.pods('web')).filter(isActive)
  assert.ok(web.length <= REPLICAS + SURGE, `${web.length} pods of the Deployment`)
  const ready = web.filter(isReady).length
  assert.ok(ready >= REPLICAS - UNAVAILABLE, `${ready} ready pods of the Deployment`)
  const jobs = Map.groupBy(
    (await cluster.pods('job')).filter(isActive),
    ({ metadata }) => metadata.labels?.['job-name'],
  )
  for (const [job, pods] of jobs) assert.ok(pods.length <= PARALLELISM, `${pods.length} pods of ${job}`)
  const set = (await cluster.pods('set')).map(({ metadata }) => metadata.labels?.['apps.kubernetes.io/pod-index'])
  assert.equal(new Set(set).size, set.length, `ordinals ${set.join()}`)
  const { items } = await cluster.client.list(ConfigMaps, { namespace })
  const kept = items.filter(({ metadata }) => metadata.name?.startsWith('kept-'))
  assert.equal(kept.length, 3, 'what has a live owner stays')
}

async function converged(cluster: Cluster): Promise<void> {
  const { client } = cluster
  const { status: web } = await client.get(Deployments, { namespace, name: 'web' })
  assert.deepEqual([web.updatedReplicas, web.availableReplicas, web.replicas], Array(3).fill(REPLICAS))
  const { status: set, spec } = await client.get(StatefulSets, { namespace, name: 'set' })
  assert.deepEqual([set.readyReplicas, set.updatedReplicas], Array(2).fill(spec.replicas))
  for (const { status, metadata } of (await client.list(Jobs, { namespace })).items) {
    assert.deepEqual([status?.succeeded, status?.failed ?? 0], [4, 0], `of ${metadata.name}`)
  }
  const { items } = await client.list(ConfigMaps, { namespace })
  const gone = items.filter(({ metadata }) => metadata.name?.startsWith('gone'))
  assert.deepEqual(gone, [], 'what has no owner goes')
}

describe('controllers with failing writes and killed managers', () => {
  it('keep their invariants, and finally reach the desired state', async () => {
    const steps = fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 12 }), fc.boolean()), {
      minLength: 2,
      maxLength: 5,
    })
    await fc.assert(
      fc.asyncProperty(fc.nat(), steps, async (seed, plan) => {
        await using cluster = await Cluster.start(seed)
        await fill(cluster)
        for (let passed = 0; passed < 8000; passed += 500) await cluster.clock.advance(500)
        cluster.isFaulty = true
        await cluster.client.delete(ConfigMaps, { namespace, name: 'gone' })
        for (const [at, [step, tenths, isKilled]] of plan.entries()) {
          await change(cluster, step, at + 1)
          for (let tenth = 0; tenth < tenths; tenth++) {
            await cluster.clock.advance(100)
            await check(cluster)
          }
          if (isKilled) await cluster.restart()
        }
        cluster.isFaulty = false
        for (let passed = 0; passed < 120_000; passed += 1000) await cluster.clock.advance(1000)
        await check(cluster)
        await converged(cluster)
      }),
      { numRuns: 4, endOnFailure: true },
    )
  })
})
