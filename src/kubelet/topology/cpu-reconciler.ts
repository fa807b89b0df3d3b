/** Updates the cpusets of running containers when the CPU manager's state changes. */
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'
import { runPeriodically } from '#lib/periodic.ts'

import { isRunning } from '../pod/container-runs.ts'
import type { PodOfNode } from '../pod/pod-of-node.ts'
import type { CpuManager } from './cpu-manager.ts'

export interface CpuReconcilerOptions {
  readonly cpus: CpuManager
  readonly runtime: Pick<Runtime, 'updateContainerResources'>
  readonly pods: () => Iterable<PodOfNode>
  readonly clock: Clock
  readonly log: Logger
  readonly periodMs: number
  readonly signal: AbortSignal
}

export function startCpuReconciler(options: CpuReconcilerOptions): void {
  const { cpus, clock, log, periodMs, signal } = options
  if (!cpus.isStatic) return
  /** The last cpuset of each container. */
  const applied = new Map<string, string>()
  const onError = (error: unknown): void => log.error(error, 'ReconcileState: failed to update container')
  const rounds = runPeriodically({ clock, periodMs, onError }, () => reconcile(options, applied))
  signal.addEventListener('abort', () => void rounds.stop())
}

export async function reconcile(
  { cpus, runtime, pods }: Pick<CpuReconcilerOptions, 'cpus' | 'runtime' | 'pods'>,
  applied: Map<string, string>,
): Promise<void> {
  const there = new Set<string>()
  for (const { pod, containers } of pods()) {
    for (const [name, { record, current }] of containers) {
      if (current === undefined || !isRunning(record)) continue
      const { containerId } = current
      there.add(containerId)
      const cpusetCpus = cpus.cpusOf(pod.metadata.uid ?? '', name)
      if (applied.get(containerId) === cpusetCpus) continue
      await runtime.updateContainerResources({ containerId, linux: { cpusetCpus } })
      applied.set(containerId, cpusetCpus)
    }
  }
  for (const containerId of applied.keys()) if (!there.has(containerId)) applied.delete(containerId)
}
