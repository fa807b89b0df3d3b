/** The dependencies and the state that the actions on one pod receive. */
import type { PodStatus } from '#apis/core/v1.ts'
import { timeOf } from '#meta/time.ts'

import type { PodStartup } from '../metrics/pod-startup.ts'
import { isRunning } from '../pod/container-runs.ts'
import { podStatusOf, type PodView, rejectedStatusOf } from '../pod/pod-status.ts'
import { resizeConditions } from '../pod/resize-state.ts'
import type { PodHost } from './pod-host.ts'
import type { PodProbes } from './pod-probes.ts'
import { isEnding, type PodState } from './pod-state.ts'
import type { StatusSink } from './status-writer.ts'

export interface PodContext {
  readonly host: PodHost
  readonly state: PodState
  readonly writer: StatusSink
  readonly startup: PodStartup
  readonly probes: PodProbes
  /** Aborted when no container may be started any more. */
  readonly signal: AbortSignal
  /** Resolved when the containers have ended, and when the volumes are unmounted as well. */
  readonly ended: PromiseWithResolvers<void>
  readonly unmounted: PromiseWithResolvers<void>
  /** Called when nothing of the pod is left. */
  readonly gone: () => void
}

/** The current status. */
export function currentStatus(
  { host, state, writer: { latest } }: Pick<PodContext, 'host' | 'state' | 'writer'>,
  hasSandbox: boolean = state.sandbox !== undefined,
): PodStatus {
  const { pod, records, verdict, disruption, isRestartingAll } = state
  const startTime = timeOf(state.startedMs)
  if (state.isRejected) return rejectedStatusOf(pod, latest, { startTime, verdict })
  const nowMs = host.clock.now()
  // A pod fails as a whole only after its last container has ended.
  const hasEnded = !records.some(isRunning)
  const disruptions = hasEnded && disruption !== undefined ? [disruption] : []
  const view: PodView = {
    records,
    hasSandbox,
    isEnding: isEnding(state),
    hostIps: host.facts.addresses,
    podIps: state.publishedIps,
    startTime,
    verdict: hasEnded ? verdict : undefined,
    isRestartingAll,
    conditions: [...resizeConditions(state.resize, nowMs), ...disruptions],
  }
  return podStatusOf(pod, latest, view, nowMs)
}

/** Does not wait for the write. */
export function publish(context: PodContext, hasSandbox?: boolean): void {
  const { host, state, writer, startup } = context
  if (state.isDeleted) return
  const status = currentStatus(context, hasSandbox)
  if (status.phase === 'Running') startup.runs(state.seenMs, host.clock.now())
  writer.put(status, state.pod)
}
