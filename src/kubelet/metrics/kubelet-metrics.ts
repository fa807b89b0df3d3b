/** Metrics about the current pods and the kubelet, computed when they are read. */
import type { PodCondition } from '#apis/core/v1.ts'
import { isTerminalPhase } from '#model/pods.ts'

import { isStatic } from '../pod/admission-rules.ts'
import { isRunning } from '../pod/container-runs.ts'
import type { PodOfNode } from '../pod/pod-of-node.ts'
import { declareAll, type KubeletMeters } from './kubelet-families.ts'

export interface KubeletMetricsOptions {
  readonly node: string
  readonly cgroupVersion: 1 | 2
  readonly pods: () => Iterable<PodOfNode>
}

export function registerKubeletMetrics(meters: KubeletMeters, options: KubeletMetricsOptions): void {
  const { node, pods, cgroupVersion } = options
  meters.collect('kubelet_node_name', (emit) => emit(1, node))
  meters.collect('kubelet_metrics_provider', (emit) => emit(1, 'cri'))
  meters.collect('kubelet_cgroup_version', (emit) => emit(cgroupVersion))
  meters.collect('kubelet_running_pods', (emit) =>
    emit(Array.from(pods()).filter(({ sandboxId }) => sandboxId !== undefined).length),
  )
  meters.collect('kubelet_running_containers', (emit) => {
    const records = Array.from(pods()).flatMap(({ containers }) => [...containers.values()])
    const made = records.filter(({ current }) => current !== undefined)
    const running = made.filter(({ record }) => isRunning(record)).length
    emit(running, 'running')
    emit(made.length - running, 'exited')
  })
  countPods(meters, pods)
  countResizes(meters, pods)
  declareAll(meters)
}

function countPods(meters: KubeletMeters, pods: KubeletMetricsOptions['pods']): void {
  const isActive = ({ pod }: PodOfNode): boolean => !isTerminalPhase(pod.status.phase)
  for (const [name, counts] of [
    ['kubelet_desired_pods', () => true],
    ['kubelet_active_pods', isActive],
  ] as const) {
    meters.collect(name, (emit) => {
      const [statics, others] = splitStatic(Array.from(pods()).filter(counts))
      emit(others.length, '')
      emit(statics.length, 'true')
    })
  }
  meters.collect('kubelet_mirror_pods', (emit) => emit(splitStatic(pods())[0].length))
  meters.collect('kubelet_managed_ephemeral_containers', (emit) =>
    emit(Array.from(pods()).reduce((sum, { pod }) => sum + (pod.spec.ephemeralContainers?.length ?? 0), 0)),
  )
  meters.collect('kubelet_working_pods', (emit) => {
    const by = Map.groupBy(pods(), ({ pod }) => workerState(pod))
    for (const life of ['sync', 'terminating', 'terminated'] as const) {
      const [statics, others] = splitStatic(by.get(life) ?? [])
      emit(others.length, life, 'desired', '')
      emit(statics.length, life, 'desired', 'true')
    }
  })
}

function countResizes(meters: KubeletMeters, pods: KubeletMetricsOptions['pods']): void {
  const conditionsOf = (type: string): readonly PodCondition[] =>
    Array.from(pods()).flatMap(({ pod }) => pod.status.conditions?.filter((one) => one.type === type) ?? [])
  meters.collect('kubelet_pod_in_progress_resizes', (emit) => emit(conditionsOf('PodResizeInProgress').length))
  meters.collect('kubelet_pod_pending_resizes', (emit) => {
    const by = Map.groupBy(conditionsOf('PodResizePending'), ({ reason = '' }) => reason.toLowerCase())
    for (const [reason, those] of by) emit(those.length, reason)
  })
}

function splitStatic(
  pods: Iterable<PodOfNode>,
): readonly [statics: readonly PodOfNode[], others: readonly PodOfNode[]] {
  const by = Map.groupBy(pods, ({ pod }) => isStatic(pod))
  return [by.get(true) ?? [], by.get(false) ?? []]
}

function workerState({ metadata, status }: PodOfNode['pod']): 'sync' | 'terminating' | 'terminated' {
  if (isTerminalPhase(status.phase)) return 'terminated'
  return metadata.deletionTimestamp === undefined ? 'sync' : 'terminating'
}
