/** `/metrics` of a kubelet: what it looks after, what it asks of its runtime, and itself. */
import type { Clock } from '#lib/clock.ts'
import { readProcess, registerProcessMetrics } from '#lib/metrics-process.ts'
import type { Registry } from '#lib/metrics.ts'
import { isTerminalPhase } from '#model/pods.ts'

import { isStatic } from '../admission-rules.ts'
import { isRunning } from '../container-runs.ts'
import type { PodOfNode } from '../pods/pod-of-node.ts'

export interface KubeletMetricsOptions {
  readonly node: string
  readonly clock: Clock
  readonly pods: () => Iterable<PodOfNode>
}

export function registerKubeletMetrics(registry: Registry, { node, clock, pods }: KubeletMetricsOptions): void {
  const gauge = { type: 'gauge', stability: 'ALPHA' } as const
  registry.callback({
    ...gauge,
    name: 'kubelet_node_name',
    help: "The node's name. The count is always 1.",
    labels: ['node'],
    collect: (emit) => emit(1, node),
  })
  registry.callback({
    ...gauge,
    name: 'kubelet_running_pods',
    help: 'Number of pods that have a running pod sandbox',
    stability: 'BETA',
    collect: (emit) => emit(Array.from(pods()).filter(({ sandboxId }) => sandboxId !== undefined).length),
  })
  registry.callback({
    ...gauge,
    name: 'kubelet_running_containers',
    help: 'Number of containers currently running',
    stability: 'BETA',
    labels: ['container_state'],
    collect(emit) {
      const records = Array.from(pods()).flatMap(({ containers }) => [...containers.values()])
      const made = records.filter(({ current }) => current !== undefined)
      const running = made.filter(({ record }) => isRunning(record)).length
      emit(running, 'running')
      emit(made.length - running, 'exited')
    },
  })
  countPods(registry, pods)
  registerProcessMetrics(registry, readProcess(clock))
}

function countPods(registry: Registry, pods: KubeletMetricsOptions['pods']): void {
  const counted: readonly (readonly [name: string, help: string, counts: (view: PodOfNode) => boolean])[] = [
    ['kubelet_desired_pods', 'The number of pods the kubelet is being instructed to run.', () => true],
    [
      'kubelet_active_pods',
      'The number of pods the kubelet considers active and which are being considered when admitting new pods.',
      ({ pod }) => !isTerminalPhase(pod.status.phase),
    ],
  ]
  for (const [name, help, counts] of counted) {
    registry.callback({
      type: 'gauge',
      stability: 'ALPHA',
      name,
      help,
      labels: ['static'],
      collect(emit) {
        const all = Array.from(pods()).filter(counts)
        const statics = all.filter(({ pod }) => isStatic(pod)).length
        emit(all.length - statics, '')
        emit(statics, 'true')
      },
    })
  }
}
