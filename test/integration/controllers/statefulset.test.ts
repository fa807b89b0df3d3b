/** Tests the StatefulSet controller on a complete API server with a virtual clock, with a fake kubelet. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import fc from 'fast-check'

import { ControllerRevisions, type StatefulSet, StatefulSets, type StatefulSetSpec } from '#apis/apps/v1.ts'
import { PersistentVolumeClaims, type Pod, Pods } from '#apis/core/v1.ts'
import { statefulSetController } from '#controllers/workloads/statefulset/controller.ts'
import { controllerOf } from '#meta/object.ts'

import { type Bench, namespace, startBench } from './workload-bench.ts'

const name = 's'
const labels = { app: 's' }
const where = { namespace, name }

let bench: Bench

beforeEach(async () => {
  bench = await startBench([statefulSetController])
})

afterEach(() => bench.stop())

function templateOf(image: string): StatefulSetSpec['template'] {
  const containers = [{ name: 'c', image, resources: {} }]
  return { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers } }
}

async function create(spec: Partial<StatefulSetSpec> = {}): Promise<void> {
  await bench.client.create(StatefulSets, {
    metadata: { namespace, name },
    spec: {
      selector: { matchLabels: labels },
      serviceName: 'svc',
      template: templateOf('img:1'),
      updateStrategy: {},
      ...spec,
    },
  })
}

const change = (spec: object): Promise<unknown> =>
  bench.client.patch(StatefulSets, where, { type: 'merge', value: { spec } })
const get = (): Promise<StatefulSet> => bench.client.get(StatefulSets, where)
const pods = async (): Promise<Pod[]> => (await bench.client.list(Pods, { namespace })).items
const names = async (): Promise<string[]> => (await pods()).map(({ metadata }) => metadata.name ?? '')
const images = async (): Promise<string[]> => (await pods()).map(({ spec }) => spec.containers?.[0]?.image ?? '')

describe('StatefulSet controller', () => {
  it('creates pods in order, each with its name', async () => {
    bench.kubelet.delayMs = 2000
    await create({ replicas: 3, ordinals: { start: 5 } })
    await bench.settle(1500)
    assert.deepEqual(await names(), ['s-5'])
    await bench.settle(10_000)
    assert.deepEqual(await names(), ['s-5', 's-6', 's-7'])
    const [pod] = await pods()
    const { status } = await get()
    assert.deepEqual(pod?.metadata.labels, {
      app: 's',
      'apps.kubernetes.io/pod-index': '5',
      'controller-revision-hash': status.currentRevision,
      'statefulset.kubernetes.io/pod-name': 's-5',
    })
    assert.deepEqual([pod.spec.hostname, pod.spec.subdomain, pod.metadata.generateName], ['s-5', 'svc', 's-'])
    assert.deepEqual(status, {
      observedGeneration: 1,
      replicas: 3,
      readyReplicas: 3,
      currentReplicas: 3,
      updatedReplicas: 3,
      currentRevision: status.currentRevision,
      updateRevision: status.currentRevision,
      collisionCount: 0,
      availableReplicas: 3,
    })
    assert.deepEqual(
      (await bench.events('StatefulSet'))[0],
      'SuccessfulCreate: Create Pod s-5 in StatefulSet s successful',
    )
  })

  it('deletes pods from the highest ordinal, and respects the start ordinal', async () => {
    await create({ replicas: 4, ordinals: { start: 5 } })
    await bench.settle(10_000)
    await change({ ordinals: { start: 6 } })
    await bench.settle(10_000)
    assert.deepEqual(await names(), ['s-6', 's-7', 's-8', 's-9'])
    await change({ replicas: 1 })
    await bench.settle(10_000)
    assert.deepEqual(await names(), ['s-6'])
    const told = (await bench.events('StatefulSet')).filter((text) => text.startsWith('SuccessfulDelete'))
    assert.deepEqual(
      told.map((text) => text.replace('SuccessfulDelete: Delete Pod ', '')),
      ['s-5', 's-9', 's-8', 's-7'].map((pod) => `${pod} in StatefulSet s successful`),
    )
  })

  it('updates pods from the highest ordinal down to the partition, and keeps old pods below it', async () => {
    await create({ replicas: 3, updateStrategy: { rollingUpdate: { partition: 2 } } })
    await bench.settle()
    await change({ template: templateOf('img:2') })
    await bench.settle()
    assert.deepEqual(await images(), ['img:1', 'img:1', 'img:2'])
    const { currentReplicas, updatedReplicas, currentRevision, updateRevision } = (await get()).status
    assert.deepEqual([currentReplicas, updatedReplicas, currentRevision === updateRevision], [2, 1, false])
    await bench.client.delete(Pods, { namespace, name: 's-0' })
    await bench.settle()
    assert.deepEqual(await images(), ['img:1', 'img:1', 'img:2'])
    await change({ updateStrategy: { rollingUpdate: { partition: 0 } } })
    await bench.settle()
    assert.deepEqual(await images(), ['img:2', 'img:2', 'img:2'])
    await change({ template: templateOf('img:1') })
    await bench.settle()
    const { items } = await bench.client.list(ControllerRevisions, { namespace })
    assert.deepEqual(new Set(items.map(({ revision }) => revision)), new Set([2, 3]))
    assert.equal((await get()).status.currentRevision, items.find(({ revision }) => revision === 3)?.metadata.name)
  })

  it('replaces terminated pods', async () => {
    await create({ replicas: 1 })
    await bench.settle()
    const [before] = await pods()
    let isSick = true
    bench.kubelet.fate = (pod) => (isSick && pod.metadata.uid === before?.metadata.uid ? { exitCode: 1 } : 'ready')
    bench.kubelet.look()
    await bench.settle()
    isSick = false
    const [after] = await pods()
    assert.notEqual(after?.metadata.uid, before?.metadata.uid)
    assert.equal(after?.status.phase, 'Running')
  })

  it('creates claims before pods, and sets their owners by the retention policy', async () => {
    await create({
      replicas: 2,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        } as never,
      ],
    })
    await bench.settle(10_000)
    const claims = async (): Promise<string[]> =>
      (await bench.client.list(PersistentVolumeClaims, { namespace })).items.map(
        (claim) => `${claim.metadata.name} ${controllerOf(claim)?.kind}`,
      )
    assert.deepEqual(await claims(), ['data-s-0 StatefulSet', 'data-s-1 StatefulSet'])
    assert.ok(
      (await bench.events('StatefulSet')).includes(
        'SuccessfulCreate: Create Claim data-s-0 Pod s-0 in StatefulSet s success',
      ),
    )
    bench.kubelet.stopMs = 60_000
    await change({ replicas: 1 })
    await bench.settle()
    assert.deepEqual(await claims(), ['data-s-0 StatefulSet', 'data-s-1 Pod'])
  })

  it('reports why a pod cannot be created', async () => {
    await bench.plane.request('POST', `/api/v1/namespaces/${namespace}/resourcequotas`, {
      metadata: { name: 'none' },
      spec: { hard: { pods: '1' } },
    })
    await bench.plane.request(
      'PATCH',
      `/api/v1/namespaces/${namespace}/resourcequotas/none/status`,
      '{"status":{"hard":{"pods":"1"},"used":{"pods":"1"}}}',
      { 'content-type': 'application/merge-patch+json' },
    )
    await create({ replicas: 1 })
    await bench.settle()
    assert.match(
      (await bench.events('StatefulSet'))[0] ?? '',
      /^FailedCreate: Create Pod s-0 in StatefulSet s failed error: pods "s-0" is forbidden: exceeded quota: none,/,
    )
  })

  it('never has two pods of one ordinal, nor a pod before its predecessor is ready', async () => {
    const steps = fc.array(
      fc.tuple(fc.constantFrom('img:1', 'img:2'), fc.integer({ min: 0, max: 4 }), fc.integer({ min: 1, max: 30 })),
      { minLength: 1, maxLength: 4 },
    )
    await fc.assert(
      fc.asyncProperty(steps, fc.constantFrom('OrderedReady', 'Parallel'), async (plan, podManagementPolicy) => {
        bench.kubelet.delayMs = 700
        bench.kubelet.stopMs = 300
        const uids = new Map<string, string>()
        await create({ replicas: 2, podManagementPolicy })
        for (const [image, replicas, rounds] of [...plan, ['img:1', 3, 300] as const]) {
          await change({ replicas, template: templateOf(image) })
          for (let round = 0; round < rounds; round++) {
            await bench.clock.advance(100)
            const all = await pods()
            assert.equal(new Set(all.map(({ metadata }) => metadata.name)).size, all.length)
            for (const { metadata } of all) uids.set(metadata.uid ?? '', metadata.name ?? '')
            if (podManagementPolicy === 'OrderedReady') {
              const pending = all.filter(
                ({ status, metadata }) => status.phase === 'Pending' && !metadata.deletionTimestamp,
              )
              assert.ok(pending.length <= 1, `${pending.length} at once`)
            }
          }
        }
        assert.deepEqual(await names(), ['s-0', 's-1', 's-2'])
        assert.deepEqual(await images(), ['img:1', 'img:1', 'img:1'])
        await bench.client.delete(StatefulSets, where)
        await bench.client.deleteCollection(ControllerRevisions, { namespace })
        await bench.client.deleteCollection(Pods, { namespace }, { gracePeriodSeconds: 0 })
        await bench.settle()
      }),
      { numRuns: 6 },
    )
  })
})
