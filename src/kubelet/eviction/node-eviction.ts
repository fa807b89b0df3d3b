/** Creates the eviction manager of a node with its dependencies. */
import type { Pod } from '#apis/core/v1.ts'
import type { Runtime } from '#cri/runtime.ts'
import type { Clock } from '#lib/clock.ts'
import { durationMs } from '#lib/go/duration.ts'
import type { Logger } from '#lib/log/log.ts'

import { readNodeUse } from '../machine/node-usage.ts'
import type { NodeUse } from '../machine/node-use.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { EventSpec } from '../pod/events.ts'
import type { PodOfNode } from '../pod/pod-of-node.ts'
import { type Eviction, EvictionManager, type EvictionOptions } from './eviction-manager.ts'
import { type EvictionConfiguration, parseThresholds } from './thresholds.ts'

/** Fields of KubeletConfiguration. */
export interface EvictionSettings extends EvictionConfiguration {
  readonly evictionPressureTransitionPeriod?: string
  readonly evictionMaxPodGracePeriod?: number
}

/** The part of the pod workers that eviction uses. */
export interface EvictablePods {
  readonly registry: { activePods(): Iterable<PodOfNode> }
  /** Resolves when the pod's containers have ended. */
  evict(pod: Pod, eviction: Eviction): Promise<void>
  readonly garbage: {
    collect(isAll?: boolean): Promise<void>
    removeUnusedImages(): Promise<number>
  }
}

export interface NodeEvictionOptions {
  readonly settings: EvictionSettings
  readonly clock: Clock
  readonly log: Logger
  readonly signal: AbortSignal
  readonly runtime: Runtime
  readonly workers: EvictablePods
  readonly facts: { readonly rootDir: string; readonly podLogsDir: string }
  readonly recordEvent: (event: EventSpec) => void
  readonly meters: KubeletMeters
  readonly onPressures: EvictionOptions['onPressures']
  /** Default: measured on the machine. */
  readonly measure?: () => Promise<NodeUse>
}

/** Runs until the signal is aborted. Throws for invalid settings. */
export function startEviction(options: NodeEvictionOptions): void {
  const { settings, clock, log, signal, runtime, workers, facts, recordEvent, meters, onPressures } = options
  const { evictionPressureTransitionPeriod: transition, evictionMaxPodGracePeriod: maxGraceSeconds } = settings
  const pods = (): Iterable<PodOfNode> => workers.registry.activePods()
  const manager = new EvictionManager({
    clock,
    log,
    signal,
    recordEvent,
    meters,
    onPressures,
    thresholds: parseThresholds(settings),
    ...(transition !== undefined && { transitionMs: durationMs(transition) }),
    ...(maxGraceSeconds !== undefined && { maxGraceSeconds }),
    measure: options.measure ?? (() => readNodeUse({ runtime, clock, pods, ...facts })),
    evict: (pod, eviction) => workers.evict(pod, eviction),
    removeDeadContainers: () => workers.garbage.collect(true),
    removeUnusedImages: () => workers.garbage.removeUnusedImages(),
  })
  void manager.run()
}
