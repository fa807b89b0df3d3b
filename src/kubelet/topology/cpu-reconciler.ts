/** Keeps running containers to the processors that are theirs, or to those that all share, whenever that has changed. */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { startRounds } from '#lib/rounds.ts'

import { isRunning } from '../container-runs.ts'
import type { Runtime } from '../cri/runtime.ts'
import type { PodOfNode } from '../pods/pod-of-node.ts'
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
  /** By container: what it was told last. */
  const told = new Map<string, string>()
  const onError = (error: unknown): void => log.error(error, 'ReconcileState: failed to update container')
  const rounds = startRounds({ clock, periodMs, onError }, () => reconcile(options, told))
  signal.addEventListener('abort', () => void rounds.stop())
}

export async function reconcile(
  { cpus, runtime, pods }: Pick<CpuReconcilerOptions, 'cpus' | 'runtime' | 'pods'>,
  told: Map<string, string>,
): Promise<void> {
  const there = new Set<string>()
  for (const { pod, containers } of pods()) {
    for (const [name, { record, current }] of containers) {
      if (current === undefined || !isRunning(record)) continue
      const { containerId } = current
      there.add(containerId)
      const cpusetCpus = cpus.cpusOf(pod.metadata.uid ?? '', name)
      if (told.get(containerId) === cpusetCpus) continue
      await runtime.updateContainerResources({ containerId, linux: { cpusetCpus } })
      told.set(containerId, cpusetCpus)
    }
  }
  for (const containerId of told.keys()) if (!there.has(containerId)) told.delete(containerId)
}
