import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { GrpcError } from '#lib/grpc/status.ts'

import type { Runtime } from '../cri/runtime.ts'
import type { ContainerStats, PodSandboxStats } from '../cri/stats-messages.ts'
import type { PodOfNode } from '../pods/pod-of-node.ts'
import { cadvisorMetrics } from './cadvisor.ts'
import { createKubeletMeters } from './kubelet-families.ts'
import { registerKubeletMetrics } from './kubelet-metrics.ts'
import { countOperations } from './runtime-operations.ts'

const POD = {
  metadata: { namespace: 'ns', name: 'p', uid: 'u1' },
  spec: { containers: [{ name: 'c', image: 'busybox', resources: { limits: { cpu: '500m', memory: '64Mi' } } }] },
  status: { phase: 'Running' },
} as unknown as Pod

const VIEW: PodOfNode = {
  pod: POD,
  sandboxId: 's1',
  containers: new Map([
    [
      'c',
      {
        record: { role: 'main', spec: POD.spec.containers[0], run: { id: 'x', startedMs: 5000 } },
        current: { containerId: 'c1', logPath: '' },
        previous: undefined,
      },
    ],
  ]) as unknown as PodOfNode['containers'],
}

test('what containers use stands under the names and labels of cadvisor', () => {
  const labels = new Map([
    ['io.kubernetes.pod.uid', 'u1'],
    ['io.kubernetes.container.name', 'c'],
  ])
  const container = {
    attributes: { id: 'c1', labels },
    cpu: { usageCoreNanoSeconds: { value: 2_500_000_000 } },
    memory: { workingSetBytes: { value: 1024 } },
  } as unknown as ContainerStats
  const sandbox = {
    attributes: { id: 's1' },
    linux: { network: { defaultInterface: { name: 'eth0', rxBytes: { value: 7 } }, interfaces: [] } },
  } as unknown as PodSandboxStats
  const page = cadvisorMetrics({
    pods: [VIEW],
    containers: [container],
    sandboxes: [sandbox],
    facts: { cgroupDriver: 'cgroupfs', memoryBytes: 4096 },
    cpus: 2,
    nowMs: 9000,
  })
  const id = '/kubepods/burstable/podu1'
  const own = `id="${id}/c1",image="busybox",name="c1",namespace="ns",pod="p"`
  for (const line of [
    `container_cpu_usage_seconds_total{container="c",cpu="total",${own}} 2.5`,
    `container_memory_working_set_bytes{container="c",${own}} 1024`,
    `container_spec_cpu_quota{container="c",${own}} 50000`,
    `container_spec_memory_limit_bytes{container="c",${own}} 6.7108864e+07`,
    `container_start_time_seconds{container="c",${own}} 5`,
    `container_network_receive_bytes_total{container="",id="${id}",image="",interface="eth0",name="s1",namespace="ns",pod="p"} 7`,
    'machine_cpu_cores 2',
    'machine_memory_bytes 4096',
  ]) {
    assert.ok(page.split('\n').includes(line), `${line}\n${page}`)
  }
  assert.ok(!page.includes('container_memory_rss'), 'what the runtime does not count is not there')
})

test('operations of the runtime are counted by their names, failures too', async () => {
  const clock = createVirtualClock()
  const meters = createKubeletMeters()
  const runtime = {
    version: async () => ({}),
    startContainer: async () => {
      throw new GrpcError('unknown', 'no')
    },
  } as unknown as Runtime
  const counted = countOperations(runtime, meters, clock)
  await counted.version({})
  await assert.rejects(counted.startContainer({ containerId: 'x' }))
  registerKubeletMetrics(meters, { node: 'n1', cgroupVersion: 1, pods: () => [VIEW] })
  const lines = meters.registry.render().split('\n')
  for (const line of [
    'kubelet_runtime_operations_total{operation_type="version"} 1',
    'kubelet_runtime_operations_errors_total{operation_type="start_container"} 1',
    'kubelet_runtime_operations_duration_seconds_count{operation_type="start_container"} 1',
    'kubelet_running_pods 1',
    'kubelet_running_containers{container_state="running"} 1',
    'kubelet_active_pods{static=""} 1',
    'kubelet_node_name{node="n1"} 1',
    'kubelet_cgroup_version 1',
    'kubelet_working_pods{config="desired",lifecycle="sync",static=""} 1',
    'kubelet_mirror_pods 0',
    'kubelet_started_pods_total 0',
  ]) {
    assert.ok(lines.includes(line), `${line}\n${lines.join('\n')}`)
  }
})
