/** Tests the DaemonSet controller on a complete API server with a virtual clock, with a fake kubelet. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { ControllerRevisions, type DaemonSet, DaemonSets, type DaemonSetSpec } from '#apis/apps/v1.ts'
import { Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import { daemonSetController } from '#controllers/workloads/daemonset/controller.ts'
import { isActive, isReady } from '#model/pods.ts'

import { type Bench, namespace, startBench } from './workload-bench.ts'

const name = 'd'
const labels = { app: 'd' }
const where = { namespace, name }

let bench: Bench

beforeEach(async () => {
  bench = await startBench([daemonSetController])
  for (const node of ['n1', 'n2', 'n3']) await addNode(node)
})

afterEach(() => bench.stop())

async function addNode(node: string, nodeLabels: Record<string, string> = {}): Promise<void> {
  await bench.client.create(Nodes, { metadata: { name: node, labels: nodeLabels } })
  // The server taints new nodes as not ready.
  await bench.client.patch(Nodes, { name: node }, { type: 'merge', value: { spec: { taints: null } } })
}

function taint(node: string, effect: string): Promise<unknown> {
  const taints = [{ key: 'own', value: 'x', effect }]
  return bench.client.patch(Nodes, { name: node }, { type: 'merge', value: { spec: { taints } } })
}

function templateOf(image: string): DaemonSetSpec['template'] {
  const containers = [{ name: 'c', image, resources: {} }]
  return { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers } }
}

async function create(spec: Partial<DaemonSetSpec> = {}): Promise<void> {
  await bench.client.create(DaemonSets, {
    metadata: { namespace, name },
    spec: { selector: { matchLabels: labels }, template: templateOf('img:1'), updateStrategy: {}, ...spec },
  })
  await bench.settle()
}

async function setImage(image: string, ms?: number): Promise<void> {
  await bench.client.patch(DaemonSets, where, { type: 'merge', value: { spec: { template: templateOf(image) } } })
  await bench.settle(ms)
}

const get = (): Promise<DaemonSet> => bench.client.get(DaemonSets, where)
const pods = async (): Promise<Pod[]> => (await bench.client.list(Pods, { namespace })).items
const nodesOf = async (): Promise<string[]> => (await pods()).map(({ spec }) => spec.nodeName ?? '').sort()
const imagesOf = (all: readonly Pod[]): string[] => all.map(({ spec }) => spec.containers?.[0]?.image ?? '')

describe('DaemonSet controller', () => {
  it("runs a pod on every node with upstream's revision hash, and counts the pods", async () => {
    await create()
    assert.deepEqual(await nodesOf(), ['n1', 'n2', 'n3'])
    const [pod] = await pods()
    assert.equal(pod?.metadata.labels?.['controller-revision-hash'], '64bcf7567')
    assert.equal(pod.metadata.labels['pod-template-generation'], '1')
    assert.deepEqual(
      pod.spec.tolerations?.slice(0, 6).map(({ key, operator, effect }) => `${key} ${operator} ${effect}`),
      [
        'node.kubernetes.io/not-ready Exists NoExecute',
        'node.kubernetes.io/unreachable Exists NoExecute',
        'node.kubernetes.io/disk-pressure Exists NoSchedule',
        'node.kubernetes.io/memory-pressure Exists NoSchedule',
        'node.kubernetes.io/pid-pressure Exists NoSchedule',
        'node.kubernetes.io/unschedulable Exists NoSchedule',
      ],
    )
    const { items } = await bench.client.list(ControllerRevisions, { namespace })
    assert.deepEqual(
      items.map(({ metadata, revision }) => [
        metadata.name,
        revision,
        metadata.labels?.['controller-revision-hash'],
        metadata.annotations?.['deprecated.daemonset.template.generation'],
      ]),
      [['d-64bcf7567', 1, '64bcf7567', '1']],
    )
    assert.deepEqual((await get()).status, {
      currentNumberScheduled: 3,
      numberMisscheduled: 0,
      desiredNumberScheduled: 3,
      numberReady: 3,
      observedGeneration: 1,
      updatedNumberScheduled: 3,
      numberAvailable: 3,
    })
    assert.match((await bench.events('DaemonSet'))[0] ?? '', /^SuccessfulCreate: Created pod: d-[a-z0-9]{5}$/)
  })

  it('evaluates node selector, affinity and tolerations, and deletes pods that no longer match', async () => {
    await addNode('n4', { disk: 'ssd' })
    await create({
      template: { ...templateOf('img:1'), spec: { ...templateOf('x').spec, nodeSelector: { disk: 'ssd' } } },
    })
    assert.deepEqual(await nodesOf(), ['n4'])
    await addNode('n5', { disk: 'ssd' })
    await bench.settle()
    assert.deepEqual(await nodesOf(), ['n4', 'n5'])
    await bench.client.patch(Nodes, { name: 'n4' }, { type: 'merge', value: { metadata: { labels: { disk: null } } } })
    await bench.settle()
    assert.deepEqual(await nodesOf(), ['n5'])
  })

  it('keeps its pod on a node with taint NoSchedule, and removes it with NoExecute', async () => {
    await create()
    await taint('n1', 'NoSchedule')
    await taint('n2', 'NoExecute')
    await bench.settle()
    assert.deepEqual(await nodesOf(), ['n1', 'n3'])
    const { desiredNumberScheduled, currentNumberScheduled, numberMisscheduled } = (await get()).status
    assert.deepEqual([desiredNumberScheduled, currentNumberScheduled, numberMisscheduled], [1, 1, 1])
  })

  it('replaces a failed pod with backoff, and records an event', async () => {
    await create()
    const isSick = (pod: Pod): boolean => pod.spec.nodeName === 'n2'
    bench.kubelet.fate = (pod) => (isSick(pod) ? { exitCode: 1 } : 'ready')
    bench.kubelet.look()
    await bench.settle(20_000)
    const told = (await bench.events('DaemonSet')).filter((text) => text.startsWith('FailedDaemonPod'))
    assert.match(
      told[0] ?? '',
      /^FailedDaemonPod: Found failed daemon pod default\/d-.{5} on node n2, will try to kill it$/,
    )
    assert.ok(told.length >= 3 && told.length <= 6, `${told.length} times in 20 s`)
  })

  it('updates one pod at a time, and keeps revisions', async () => {
    await create()
    bench.kubelet.delayMs = 1000
    await bench.client.patch(DaemonSets, where, { type: 'merge', value: { spec: { template: templateOf('img:2') } } })
    for (let passed = 0; passed < 20_000; passed += 100) {
      await bench.clock.advance(100)
      const ready = (await pods()).filter((pod) => isActive(pod) && isReady(pod)).length
      assert.ok(ready >= 2, `${ready} ready`)
    }
    assert.deepEqual(imagesOf(await pods()), ['img:2', 'img:2', 'img:2'])
    await setImage('img:1', 20_000)
    const { items } = await bench.client.list(ControllerRevisions, { namespace })
    assert.deepEqual(new Map(items.map(({ metadata, revision }) => [revision, metadata.name])).get(3), 'd-64bcf7567')
    assert.equal(items.length, 2)
  })

  it('creates the new pod first with maxSurge', async () => {
    await create({ updateStrategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } })
    bench.kubelet.delayMs = 1000
    await bench.client.patch(DaemonSets, where, { type: 'merge', value: { spec: { template: templateOf('img:2') } } })
    for (let passed = 0; passed < 20_000; passed += 100) {
      await bench.clock.advance(100)
      const active = (await pods()).filter(isActive)
      assert.ok(active.length <= 4 && active.filter(isReady).length >= 3, `${active.length} pods`)
    }
    assert.deepEqual(imagesOf(await pods()), ['img:2', 'img:2', 'img:2'])
  })
})
