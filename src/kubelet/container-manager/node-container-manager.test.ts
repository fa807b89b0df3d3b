import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { Container, Pod } from '#apis/core/v1.ts'
import { realClock } from '#lib/clock.ts'

import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { CpuManager } from '../topology/cpu-manager.ts'
import type { TopologyPolicy } from '../topology/hints.ts'
import { MemoryManager } from '../topology/memory-manager.ts'
import { type ContainerManagerOptions, NodeContainerManager, podAsOne } from './node-container-manager.ts'

const GI = 1024 ** 3

/** Two NUMA nodes, each with four CPUs and 10 GiB; the first CPU and 1 GiB are reserved. */
async function withNode(
  policy: TopologyPolicy,
  work: (containerManager: NodeContainerManager, memory: MemoryManager) => Promise<void>,
  more: Partial<ContainerManagerOptions> = {},
): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'grants-'))
  const meters = createKubeletMeters()
  const clock = realClock
  const cpus = new CpuManager({
    path: join(dir, 'cpu'),
    policy: 'static',
    cpus: Array.from({ length: 8 }, (_, id) => ({ id, core: String(id), socket: id >> 2, node: id >> 2 })),
    reserved: new Set([0]),
    isFullCoresOnly: false,
    isStrict: false,
    clock,
    meters,
  })
  const memory = new MemoryManager({
    path: join(dir, 'memory'),
    policy: 'Static',
    nodes: [0, 1].map((id) => ({ id, memoryBytes: 10 * GI, hugePages: new Map() })),
    reserved: new Map([[0, new Map([['memory', GI]])]]),
    clock,
    meters,
  })
  const devices = {
    hints: () => [],
    allocate: async () => undefined,
    release: async () => undefined,
    uids: () => [],
  } as unknown as ContainerManagerOptions['devices']
  const claims = { uids: () => [], release: async () => undefined } as unknown as ContainerManagerOptions['claims']
  const about = { policy, scope: 'container', nodes: [0, 1], keepsCpuQuota: false } as const
  try {
    await Promise.all([cpus.start(), memory.start()])
    await work(new NodeContainerManager({ devices, claims, cpus, memory, clock, meters, ...about, ...more }), memory)
  } finally {
    await rm(dir, { recursive: true })
  }
}

const containerOf = (name: string, cpu: string, memory: string): Container => {
  const amounts = { cpu, memory }
  return { name, resources: { requests: amounts, limits: amounts } }
}

const podOf = (uid: string, ...containers: Container[]): Pod => ({
  metadata: { uid, name: uid, namespace: 'ns' },
  spec: { containers },
  status: {},
})

test('the topology manager takes CPUs and memory of a container from the same NUMA node, or rejects the pod', () =>
  withNode('single-numa-node', async (containerManager, memory) => {
    assert.equal(await containerManager.admit(podOf('u1', containerOf('c', '3', '2Gi'))), undefined)
    assert.equal(memory.nodesOf('u1', 'c'), '0')
    assert.equal(await containerManager.admit(podOf('u2', containerOf('c', '1', '4Gi'))), undefined)
    assert.equal(memory.nodesOf('u2', 'c'), '1', 'where there are processors')
    const apart = await containerManager.admit(podOf('u3', containerOf('c', '2', '7Gi')))
    assert.deepEqual(apart, {
      reason: 'TopologyAffinityError',
      text: 'Resources cannot be allocated with Topology locality',
    })
    assert.deepEqual(containerManager.uids(), ['u1', 'u2'], 'who is refused holds nothing')
  }))

test('the memory manager rejects a pod without available memory with UnexpectedAdmissionError', () =>
  withNode('none', async (containerManager) => {
    const why = '[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available'
    assert.deepEqual(await containerManager.admit(podOf('u1', containerOf('c', '1', '30Gi'))), {
      reason: 'UnexpectedAdmissionError',
      text: `Allocate failed due to ${why}, which is unexpected`,
    })
    assert.deepEqual(containerManager.uids(), [], 'the processors that it had by then are free')
  }))

test('containers with exclusive CPUs have no CPU quota and cannot be resized', () =>
  withNode('none', async (containerManager) => {
    const pod = podOf('u1', containerOf('own', '2', '1Gi'), containerOf('shared', '500m', '1Gi'))
    await containerManager.admit(pod)
    assert.deepEqual(
      ['own', 'shared', undefined].map((name) => containerManager.hasExclusiveCpus('u1', name)),
      [true, false, true],
    )
    const [own, shared] = pod.spec.containers
    assert.ok(own !== undefined && shared !== undefined)
    const more = podOf('u1', containerOf('own', '3', '1Gi'), shared)
    assert.deepEqual(containerManager.refuseResize(more, pod), {
      text: 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
      label: 'guaranteed_pod_cpu_manager_static_policy',
    })
    const larger = podOf('u1', own, containerOf('shared', '500m', '2Gi'))
    assert.equal(
      containerManager.refuseResize(larger, pod)?.text,
      'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
    )
    const burstable = podOf('u2', { name: 'c', resources: { requests: { cpu: '1' } } })
    assert.equal(containerManager.refuseResize(burstable, podOf('u2', { name: 'c', resources: {} })), undefined)
  }))

test('containers with exclusive CPUs keep their CPU quota if DisableCPUQuotaWithExclusiveCPUs is off', () =>
  withNode(
    'none',
    async (containerManager) => {
      await containerManager.admit(podOf('u1', containerOf('c', '2', '1Gi')))
      assert.equal(containerManager.hasExclusiveCpus('u1', 'c'), false)
    },
    { keepsCpuQuota: true },
  ))

test('podAsOne() adds up containers and sidecars, or takes the peak of the init containers', () => {
  const pod = podOf('u1', containerOf('a', '1', '1Gi'), containerOf('b', '1', '2Gi'))
  const initContainers = [containerOf('init', '1', '5Gi')]
  const whole = podAsOne({ ...pod, spec: { ...pod.spec, initContainers } })
  assert.deepEqual(whole.resources?.requests, { cpu: '2', memory: String(5 * GI) })
})
