/**
 * Tests the Deployment controller on a complete API server with a virtual clock, with the ReplicaSet controller and a
 * fake kubelet.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import fc from 'fast-check'

import { type Deployment, Deployments, type DeploymentSpec, type ReplicaSet, ReplicaSets } from '#apis/apps/v1.ts'
import { Events, type Pod, Pods } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { deploymentController } from '#controllers/workloads/deployment/controller.ts'
import { replicaSetController } from '#controllers/workloads/replicaset.ts'
import { type RunningControllers, startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { scaledValue } from '#meta/int-or-string.ts'
import { isActive, isReady } from '#model/pods.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

import { createFakeKubelet, type FakeKubelet } from './fake-kubelet.ts'

const namespace = 'default'
const name = 'web'
const labels = { app: 'web' }
const where = { namespace, name }

let clock: VirtualClock
let plane: ControlPlane
let controllers: RunningControllers
let client: ApiClient
let kubelet: FakeKubelet

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  kubelet = createFakeKubelet()
  controllers = startControllers(plane, clock, [deploymentController, replicaSetController, kubelet])
  client = controllers.client
})

afterEach(async () => {
  await controllers.stop()
  await plane.stop()
})

function templateOf(image: string): DeploymentSpec['template'] {
  const containers = [{ name: 'c', image, resources: {} }]
  return { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers } }
}

async function create(spec: Partial<DeploymentSpec>): Promise<void> {
  await client.create(Deployments, {
    metadata: { namespace, name },
    spec: { selector: { matchLabels: labels }, template: templateOf('img:1'), strategy: {}, ...spec },
  })
  await settle()
}

async function change(value: object, settleMs = 5000): Promise<void> {
  await client.patch(Deployments, where, { type: 'merge', value })
  await settle(settleMs)
}

const settle = async (ms = 5000): Promise<void> => {
  for (let passed = 0; passed < ms; passed += 500) await clock.advance(500)
}
const setImage = (image: string, ms?: number): Promise<void> => change({ spec: { template: templateOf(image) } }, ms)
const get = (): Promise<Deployment> => client.get(Deployments, where)
const pods = async (): Promise<Pod[]> => (await client.list(Pods, { namespace })).items
const sets = async (): Promise<ReplicaSet[]> => {
  const { items } = await client.list(ReplicaSets, { namespace })
  return items.sort((a, b) => revisionOf(a) - revisionOf(b))
}
const revisionOf = ({ metadata }: ReplicaSet): number =>
  Number(metadata.annotations?.['deployment.kubernetes.io/revision'])
const sizes = async (): Promise<number[]> => (await sets()).map(({ spec }) => spec.replicas ?? 0)
const events = async (): Promise<string[]> =>
  (await client.list(Events, { namespace })).items
    .filter(({ involvedObject }) => involvedObject.kind === 'Deployment')
    .map(({ reason, message, source }) => `${source?.component} ${reason}: ${message}`)
const conditions = async (): Promise<string[]> =>
  ((await get()).status.conditions ?? []).map(
    ({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`,
  )

describe('Deployment controller', () => {
  it("creates a ReplicaSet with upstream's name, and reports progress", async () => {
    await create({ replicas: 4 })
    const [set] = await sets()
    assert.equal(set?.metadata.name, 'web-56fcd86c8f')
    assert.equal(set.metadata.labels?.['pod-template-hash'], '56fcd86c8f')
    assert.deepEqual(set.metadata.annotations, {
      'deployment.kubernetes.io/desired-replicas': '4',
      'deployment.kubernetes.io/max-replicas': '5',
      'deployment.kubernetes.io/revision': '1',
    })
    const { metadata, status } = await get()
    assert.equal(metadata.annotations?.['deployment.kubernetes.io/revision'], '1')
    const { observedGeneration, replicas, updatedReplicas, readyReplicas, availableReplicas, terminatingReplicas } =
      status
    assert.deepEqual(
      [observedGeneration, replicas, updatedReplicas, readyReplicas, availableReplicas, terminatingReplicas],
      [1, 4, 4, 4, 4, 0],
    )
    assert.deepEqual(await conditions(), [
      'Available True MinimumReplicasAvailable: Deployment has minimum availability.',
      'Progressing True NewReplicaSetAvailable: ReplicaSet "web-56fcd86c8f" has successfully progressed.',
    ])
    assert.deepEqual(await events(), [
      'deployment-controller ScalingReplicaSet: Scaled up replica set web-56fcd86c8f from 0 to 4',
    ])
  })

  it('pauses a rollout at maxSurge and maxUnavailable while new pods are not ready', async () => {
    await create({ replicas: 10, strategy: { rollingUpdate: { maxSurge: 3, maxUnavailable: 2 } } })
    kubelet.fate = (pod) => (pod.spec.containers?.[0]?.image === 'img:2' ? 'running' : 'ready')
    await setImage('img:2')
    assert.deepEqual(await sizes(), [8, 5])
    const [old, fresh] = await sets()
    assert.deepEqual((await events()).slice(1), [
      `deployment-controller ScalingReplicaSet: Scaled up replica set ${fresh?.metadata.name} from 0 to 3`,
      `deployment-controller ScalingReplicaSet: Scaled down replica set ${old?.metadata.name} from 10 to 8`,
      `deployment-controller ScalingReplicaSet: Scaled up replica set ${fresh?.metadata.name} from 3 to 5`,
    ])
    await change({ spec: { replicas: 20 } })
    assert.deepEqual(await sizes(), [14, 9])
  })

  it('reports a missed progress deadline, and the recovery', async () => {
    kubelet.fate = () => 'running'
    await create({ replicas: 1, progressDeadlineSeconds: 60 })
    await settle(70_000)
    assert.deepEqual(
      (await conditions()).at(-1),
      ['Progressing False ProgressDeadlineExceeded: ReplicaSet "web-56fcd86c8f" has timed out progressing.'][0],
    )
    kubelet.fate = () => 'ready'
    kubelet.look()
    await settle()
    assert.match((await conditions()).join(), /Progressing True NewReplicaSetAvailable/)
  })

  it('gives the ReplicaSet of an old template the next revision', async () => {
    await create({ replicas: 2 })
    await setImage('img:2')
    await setImage('img:1')
    const [older, newer] = await sets()
    assert.deepEqual([revisionOf(older as ReplicaSet), revisionOf(newer as ReplicaSet)], [2, 3])
    assert.equal(newer?.metadata.name, 'web-56fcd86c8f')
    assert.equal(newer.metadata.annotations?.['deployment.kubernetes.io/revision-history'], '1')
    assert.deepEqual(await sizes(), [0, 2])
  })

  it('rolls back if the deprecated annotation is set', async () => {
    await create({ replicas: 1 })
    await setImage('img:2')
    await change({ metadata: { annotations: { 'deprecated.deployment.rollback.to': '1' } } })
    const { metadata, spec } = await get()
    assert.equal(spec.template.spec.containers?.[0]?.image, 'img:1')
    assert.equal(metadata.annotations?.['deprecated.deployment.rollback.to'], undefined)
    assert.ok(
      (await events()).includes('deployment-controller DeploymentRollback: Rolled back deployment "web" to revision 1'),
    )
    await change({ metadata: { annotations: { 'deprecated.deployment.rollback.to': '7' } } })
    assert.ok(
      (await events()).includes(
        'deployment-controller DeploymentRollbackRevisionNotFound: Unable to find the revision to rollback to.',
      ),
    )
  })

  it('adopts the ReplicaSet of its template, and reports that', async () => {
    const set = { replicas: 2, selector: { matchLabels: labels }, template: templateOf('img:1') }
    await client.create(ReplicaSets, { metadata: { namespace, name: 'old', labels }, spec: set })
    await settle()
    const told: string[] = []
    const watching = new AbortController()
    const seen = (async () => {
      for await (const { object } of client.watch(Deployments, { namespace, signal: watching.signal })) {
        const reason = (object as Deployment).status?.conditions?.find(({ type }) => type === 'Progressing')?.reason
        if (reason !== undefined && reason !== told.at(-1)) told.push(reason)
      }
    })().catch(() => undefined)
    await create({ replicas: 2 })
    watching.abort()
    await seen
    assert.deepEqual(told, ['FoundNewReplicaSet', 'NewReplicaSetAvailable'])
    assert.equal((await get()).metadata.annotations?.['deployment.kubernetes.io/revision'], '1')
  })

  it('deletes the oldest ReplicaSets beyond the history limit', async () => {
    await create({ replicas: 1, revisionHistoryLimit: 1 })
    for (const image of ['img:2', 'img:3', 'img:4']) await setImage(image)
    assert.deepEqual((await sets()).map(revisionOf), [3, 4])
  })

  it('only scales while it is paused, and reports that', async () => {
    await create({ replicas: 2 })
    await change({ spec: { paused: true } })
    await setImage('img:2')
    assert.equal((await sets()).length, 1)
    assert.ok((await conditions()).includes('Progressing Unknown DeploymentPaused: Deployment is paused'))
    await change({ spec: { replicas: 3 } })
    assert.deepEqual(await sizes(), [3])
    await change({ spec: { paused: false } })
    assert.deepEqual(await sizes(), [0, 3])
  })

  it('deletes all old pods before it creates new ones with strategy Recreate', async () => {
    kubelet.stopMs = 3000
    await create({ replicas: 2, strategy: { type: 'Recreate' } })
    await setImage('img:2', 1500)
    assert.deepEqual(await sizes(), [0])
    assert.equal((await pods()).length, 2)
    await settle(6000)
    assert.deepEqual(await sizes(), [0, 2])
  })

  it('uses another ReplicaSet name after a hash collision', async () => {
    await client.create(ReplicaSets, {
      metadata: { namespace, name: 'web-56fcd86c8f' },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'x' } },
        template: { ...templateOf('img:1'), metadata: { labels: { app: 'x' } } },
      },
    })
    await create({ replicas: 1 })
    assert.equal((await get()).status.collisionCount, 1)
    assert.equal((await pods()).length, 1)
  })

  it('reports why pods cannot be created', async () => {
    const quota = { metadata: { namespace, name: 'none' }, spec: { hard: { pods: '1' } } }
    await plane.request('POST', `/api/v1/namespaces/${namespace}/resourcequotas`, quota)
    await plane.request(
      'PATCH',
      `/api/v1/namespaces/${namespace}/resourcequotas/none/status`,
      '{"status":{"hard":{"pods":"1"},"used":{"pods":"1"}}}',
      { 'content-type': 'application/merge-patch+json' },
    )
    await create({ replicas: 1 })
    const failure = (await conditions()).find((condition) => condition.startsWith('ReplicaFailure')) ?? ''
    assert.match(failure, /^ReplicaFailure True FailedCreate: pods "web-56fcd86c8f-[a-z0-9]{5}" is forbidden: exceeded/)
  })

  it('never exceeds replicas + maxSurge, nor falls below the available minimum', async () => {
    const shares = fc.constantFrom<number | string>(0, 1, 2, '25%', '50%')
    const steps = fc.array(fc.tuple(fc.constantFrom('img:1', 'img:2', 'img:3'), fc.integer({ min: 100, max: 3000 })), {
      minLength: 1,
      maxLength: 4,
    })
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 8 }), shares, shares, steps, async (replicas, surge, loss, plan) => {
        fc.pre(surge !== 0 || loss !== 0)
        kubelet.delayMs = 0
        await create({ replicas, strategy: { rollingUpdate: { maxSurge: surge, maxUnavailable: loss } } })
        kubelet.delayMs = 700
        const most = replicas + scaledValue(surge, replicas, 'up')
        const rounded = scaledValue(loss, replicas, 'down')
        const least = replicas - (rounded === 0 && most === replicas ? 1 : rounded)
        for (const [image, ms] of plan) {
          await client.patch(Deployments, where, { type: 'merge', value: { spec: { template: templateOf(image) } } })
          for (let passed = 0; passed < ms; passed += 100) {
            await clock.advance(100)
            const active = (await pods()).filter(isActive)
            assert.ok(active.length <= most, `${active.length} pods, ${most} at most`)
            assert.ok(
              active.filter(isReady).length >= least,
              `${active.filter(isReady).length} ready, ${least} at least`,
            )
          }
        }
        await settle(20_000)
        const { status } = await get()
        assert.deepEqual([status.updatedReplicas, status.availableReplicas, status.replicas], Array(3).fill(replicas))
        await client.delete(Deployments, where)
        await client.deleteCollection(ReplicaSets, { namespace })
        await client.deleteCollection(Pods, { namespace }, { gracePeriodSeconds: 0 })
        await settle()
      }),
      { numRuns: 8 },
    )
  })
})
