import assert from 'node:assert/strict'
import { mkdtemp, open, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { Container, Pod } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import { STUB_CONTAINER_MANAGER } from '../container-manager/container-manager.ts'
import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { compareResizes, isGranted, type PendingResize } from '../pod/pod-allocation.ts'
import { createMemoryAllocations, openAllocations } from './allocations.ts'
import type { PodWorkers } from './pod-workers.ts'
import { type Bed, bedOf, containerOf, podOf } from './worker.fixture.ts'

const amounts = (cpu: string, memory = '64Mi'): Container['resources'] => ({
  requests: { cpu, memory },
  limits: { cpu, memory },
})

const sized = (
  resources: Container['resources'],
  metadata: Partial<Pod['metadata']> = {},
  more: Partial<Container> = {},
): Pod => podOf({ containers: [containerOf('c', { resources, ...more })] }, metadata)

const statusOf = (workers: PodWorkers, name = 'web'): Pod['status'] =>
  workers.registry.find('default', name)?.pod.status ?? {}
const typesOf = ({ conditions = [] }: Pod['status']): string[] =>
  conditions.map(({ type }) => type).filter((type) => type.startsWith('PodResize'))

async function cgroupOf({ runtime }: Bed): Promise<Record<string, unknown>> {
  const [container] = (await runtime.listContainers({ filter: { state: { state: 1 } } })).containers
  const { status } = await runtime.containerStatus({ containerId: container?.id ?? '' })
  const { cpuQuota, cpuShares, memoryLimitInBytes } = status?.resources?.linux ?? {}
  return { cpuQuota: Number(cpuQuota), cpuShares: Number(cpuShares), memory: Number(memoryLimitInBytes) }
}

test('a pod resize is allocated, reported as in progress, applied to the cgroup, and reported as completed', async () => {
  const bed = bedOf()
  const { clock, workers, patches, events } = bed
  workers.updatePod({ type: 'ADDED', object: sized(amounts('100m')) })
  await clock.advance(3000)
  patches.length = 0
  workers.updatePod({ type: 'MODIFIED', object: sized(amounts('200m', '128Mi'), { generation: 2 }) })
  await clock.advance(1000)
  assert.deepEqual(await cgroupOf(bed), { cpuQuota: 20_000, cpuShares: 204, memory: 128 * 2 ** 20 })
  const [first, last] = patches
  const requested = { cpu: '200m', memory: '128Mi' }
  assert.deepEqual(first?.status['allocatedResources'], requested)
  assert.equal(first?.status['resources'], undefined)
  const [condition] = first?.status.conditions ?? []
  assert.deepEqual([condition?.type, condition?.status], ['PodResizeInProgress', 'True'])
  assert.deepEqual(last?.status['resources'], { limits: requested, requests: requested })
  assert.deepEqual(last?.status.conditions, [{ $patch: 'delete', type: 'PodResizeInProgress' }])
  assert.equal(patches.length, 2)
  const text =
    '{"containers":[{"name":"c","resources":{"limits":{"cpu":"200m","memory":"128Mi"},"requests":{"cpu":"200m","memory":"128Mi"}}}],"generation":2}'
  assert.deepEqual(events.slice(-2), [
    `ResizeStarted: Pod resize started: ${text}`,
    `ResizeCompleted: Pod resize completed: ${text}`,
  ])
  assert.equal(statusOf(workers).containerStatuses?.[0]?.restartCount, 0)
  await workers.stop()
})

test('a pod resize of exclusive resources is infeasible, and reported once', async () => {
  const text = 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"'
  const label = 'guaranteed_pod_cpu_manager_static_policy'
  const meters = createKubeletMeters()
  const bed = bedOf(
    {},
    { meters, containerManager: { ...STUB_CONTAINER_MANAGER, refuseResize: () => ({ text, label }) } },
  )
  const { clock, workers, events } = bed
  workers.updatePod({ type: 'ADDED', object: sized(amounts('1')) })
  await clock.advance(3000)
  workers.updatePod({ type: 'MODIFIED', object: sized(amounts('2'), { generation: 2 }) })
  await clock.advance(200_000)
  const pending = statusOf(workers).conditions?.find(({ type }) => type === 'PodResizePending')
  assert.deepEqual([pending?.reason, pending?.message], ['Infeasible', text])
  const infeasible = events.filter((event) =>
    event.startsWith('ResizeInfeasible: Pod resize Infeasible: {"containers":'),
  )
  assert.equal(infeasible.length, 1)
  const counted = `kubelet_pod_infeasible_resizes_total{reason_detail="${label}"} 1`
  assert.ok(meters.registry.render().split('\n').includes(counted))
  await workers.stop()
})

test('a pod resize that does not fit is deferred, and allocated when another pod ends', async () => {
  const bed = bedOf()
  const { clock, workers, events } = bed
  const other = sized(amounts('1500m'), { name: 'other', uid: 'u2' })
  workers.updatePod({ type: 'ADDED', object: other })
  workers.updatePod({ type: 'ADDED', object: sized(amounts('100m')) })
  await clock.advance(3000)
  workers.updatePod({ type: 'MODIFIED', object: sized(amounts('1'), { generation: 2 }) })
  await clock.advance(1000)
  const why = "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000"
  const pending = statusOf(workers).conditions?.find(({ type }) => type === 'PodResizePending')
  assert.deepEqual([pending?.reason, pending?.message, pending?.observedGeneration], ['Deferred', why, 2])
  assert.ok(events.some((event) => event.startsWith('ResizeDeferred: Pod resize OutOfcpu: {"containers":')))
  assert.equal(statusOf(workers).containerStatuses?.[0]?.allocatedResources?.['cpu'], '100m')
  await clock.advance(200_000)
  assert.equal(events.filter((event) => event.startsWith('ResizeDeferred')).length, 1)
  workers.updatePod({ type: 'DELETED', object: other })
  await clock.advance(3000)
  assert.deepEqual(typesOf(statusOf(workers)), [])
  assert.equal(statusOf(workers).containerStatuses?.[0]?.resources?.limits?.['cpu'], '1')
  assert.equal((await cgroupOf(bed))['cpuQuota'], 100_000)
  await workers.stop()
})

test('a container with resize policy RestartContainer is restarted for a resize', async () => {
  const bed = bedOf()
  const { clock, workers, events } = bed
  const more = { resizePolicy: [{ resourceName: 'memory', restartPolicy: 'RestartContainer' }] }
  workers.updatePod({ type: 'ADDED', object: sized(amounts('100m'), {}, more) })
  await clock.advance(3000)
  workers.updatePod({ type: 'MODIFIED', object: sized(amounts('200m'), { generation: 2 }, more) })
  await clock.advance(3000)
  assert.equal(statusOf(workers).containerStatuses?.[0]?.restartCount, 0)
  workers.updatePod({ type: 'MODIFIED', object: sized(amounts('200m', '128Mi'), { generation: 3 }, more) })
  await clock.advance(3000)
  assert.ok(events.includes('Killing: Container c resize requires restart'))
  assert.equal(statusOf(workers).containerStatuses?.[0]?.restartCount, 1)
  assert.equal((await cgroupOf(bed))['memory'], 128 * 2 ** 20)
  assert.deepEqual(typesOf(statusOf(workers)), [])
  await workers.stop()
})

test('a pod resize of a memory limit below the usage is rejected, and reported', async () => {
  const bed = bedOf()
  const { clock, workers, events } = bed
  workers.updatePod({ type: 'ADDED', object: sized(amounts('100m')) })
  await clock.advance(3000)
  workers.updatePod({ type: 'MODIFIED', object: sized(amounts('100m', '1Mi'), { generation: 2 }) })
  await clock.advance(3000)
  const condition = statusOf(workers).conditions?.find(({ type }) => type === 'PodResizeInProgress')
  const why =
    'cannot decrease memory limits: attempting to set container "c" memory limit (1048576) below current usage (10485760)'
  assert.deepEqual([condition?.reason, condition?.message], ['Error', why])
  assert.equal((await cgroupOf(bed))['memory'], 64 * 2 ** 20)
  assert.equal(statusOf(workers).containerStatuses?.[0]?.resources?.limits?.['memory'], '64Mi')
  assert.equal(events.filter((event) => event.startsWith('ResizeError: Pod resize error: ')).length, 1)
  await workers.stop()
})

test('a pod resize that the runtime rejects is retried, and not reported as completed meanwhile', async () => {
  let faults = 1
  const bed = bedOf({}, {}, (runtime) => ({
    updateContainerResources: (request, options) => {
      if (faults-- > 0) throw new Error('the cgroup is busy')
      return runtime.updateContainerResources(request, options)
    },
  }))
  const { clock, workers } = bed
  workers.updatePod({ type: 'ADDED', object: sized(amounts('100m')) })
  await clock.advance(3000)
  workers.updatePod({ type: 'MODIFIED', object: sized(amounts('200m'), { generation: 2 }) })
  await clock.advance(1000)
  const condition = statusOf(workers).conditions?.find(({ type }) => type === 'PodResizeInProgress')
  assert.deepEqual([condition?.reason, condition?.message], ['Error', 'the cgroup is busy'])
  assert.equal(statusOf(workers).containerStatuses?.[0]?.resources?.limits?.['cpu'], '100m')
  await clock.advance(95_000)
  assert.deepEqual(typesOf(statusOf(workers)), [])
  assert.equal(statusOf(workers).containerStatuses?.[0]?.resources?.limits?.['cpu'], '200m')
  await workers.stop()
})

test('after a restart of the kubelet an allocated pod resize is applied, and a deferred one is still deferred', async () => {
  const allocations = createMemoryAllocations()
  const bed = bedOf({}, { allocations })
  bed.workers.updatePod({ type: 'ADDED', object: sized(amounts('100m')) })
  await bed.clock.advance(3000)
  const status = statusOf(bed.workers)
  await bed.workers.stop()
  const resized = sized(amounts('1900m'), { generation: 2 })
  const again = bed.restart()
  again.updatePod({ type: 'ADDED', object: sized(amounts('1500m'), { name: 'other', uid: 'u2' }) })
  await bed.clock.advance(2000)
  again.updatePod({ type: 'ADDED', object: { ...resized, status } })
  again.sourcesReady()
  await bed.clock.advance(2000)
  assert.deepEqual(typesOf(statusOf(again)), ['PodResizePending'])
  await again.stop()
  allocations.set('u1', { containers: { c: amounts('200m') ?? {} } })
  const last = bed.restart()
  last.updatePod({ type: 'ADDED', object: { ...sized(amounts('200m'), { generation: 3 }), status } })
  last.sourcesReady()
  await bed.clock.advance(2000)
  assert.equal(statusOf(last).containerStatuses?.[0]?.resources?.limits?.['cpu'], '200m')
  assert.deepEqual(typesOf(statusOf(last)), [])
  await last.stop()
})

test('deferred pod resizes are retried in order: decreases first, then priority, QoS class and waiting time', () => {
  const of = (more: Partial<PendingResize>): PendingResize => ({
    isMore: true,
    priority: 0,
    isGuaranteed: false,
    sinceMs: 5,
    ...more,
  })
  const all = [of({}), of({ sinceMs: 1 }), of({ isGuaranteed: true }), of({ priority: 9 }), of({ isMore: false })]
  assert.deepEqual(all.toSorted(compareResizes), all.toReversed())
})

test('an equal quantity in another notation causes no pod resize', () => {
  const { spec } = sized(amounts('1000m', '1Gi'))
  assert.ok(isGranted(spec, { containers: { c: amounts('1', '1024Mi') ?? {} } }))
})

test('the checkpoint of allocated pod resources survives a restart and a power cut', async (context) => {
  const dir = await mkdtemp(join(tmpdir(), 'allocations-'))
  const handle = await open(join(dir, 'any'), 'w')
  const syncs = context.mock.method(Object.getPrototypeOf(handle) as typeof handle, 'sync')
  await handle.close()
  const clock = createVirtualClock()
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock })
  const path = join(dir, 'allocated_pods_state')
  try {
    const first = await openAllocations({ path, clock, log })
    first.set('u1', { containers: { c: amounts('1') ?? {} } })
    first.set('u2', { containers: {} })
    first.retain(new Set(['u1']))
    await first.settled()
    assert.ok(syncs.mock.callCount() > 0, 'the file is flushed, so that a power cut cannot empty it')
    const again = await openAllocations({ path, clock, log })
    assert.deepEqual(again.get('u1')?.containers, { c: amounts('1') })
    assert.equal(again.get('u2'), undefined)
    assert.match(await readFile(path, 'utf8'), /^\{"data":"\{\\"entries\\":\{\\"u1\\":\{\\"ContainerResources\\":/)
  } finally {
    await rm(dir, { recursive: true })
  }
})
