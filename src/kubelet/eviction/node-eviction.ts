/** The eviction of one node: its manager, told by the machine what is left and acting on the node's pods. */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'
import { durationMs } from '#meta/duration.ts'

import type { Runtime } from '../cri/runtime.ts'
import type { Note } from '../kubelet-notes.ts'
import { useOfNode } from '../machine/use-of-node.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { PodWorkers } from '../pods/pod-workers.ts'
import { EvictionManager } from './eviction-manager.ts'
import type { NodeUse } from './node-use.ts'
import { type EvictionConfiguration, parseThresholds } from './thresholds.ts'

/** By the names of KubeletConfiguration. */
export interface EvictionSettings extends EvictionConfiguration {
  readonly evictionPressureTransitionPeriod?: string
  readonly evictionMaxPodGracePeriod?: number
}

export interface NodeEvictionOptions {
  readonly settings: EvictionSettings
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  readonly runtime: Runtime
  readonly workers: PodWorkers
  readonly facts: { readonly rootDir: string; readonly podLogsDir: string }
  readonly note: (said: Note) => void
  readonly meters: KubeletMeters
  /** Default: as the machine tells. */
  readonly look?: () => Promise<NodeUse>
}

/** Runs until the signal is aborted. Throws for settings that are wrong. */
export function startEviction(options: NodeEvictionOptions): EvictionManager {
  const { settings, clock, log, signal, runtime, workers, facts, note, meters } = options
  const { evictionPressureTransitionPeriod: transition, evictionMaxPodGracePeriod: maxGraceSeconds } = settings
  const pods = (): ReturnType<PodWorkers['activePods']> => workers.activePods()
  const manager = new EvictionManager({
    clock,
    log,
    signal,
    note,
    meters,
    thresholds: parseThresholds(settings),
    ...(transition !== undefined && { transitionMs: durationMs(transition) }),
    ...(maxGraceSeconds !== undefined && { maxGraceSeconds }),
    look: options.look ?? (() => useOfNode({ runtime, clock, pods, ...facts })),
    evict: (pod, eviction) => workers.evict(pod, eviction),
    removeDeadContainers: () => workers.garbage.collect(true),
    removeUnusedImages: () => workers.garbage.removeUnusedImages(),
  })
  void manager.run()
  return manager
}
