import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import type { Runtime } from '#cri/runtime.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { GrpcError } from '#lib/grpc/status.ts'

import type { PodOfNode } from '../pod/pod-of-node.ts'
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

test('kubelet metrics count runtime operations and their failures by name', async () => {
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
