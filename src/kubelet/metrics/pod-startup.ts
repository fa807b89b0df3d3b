/** Pod startup SLI: measures the time from a pod's creation until the API server reports all containers as started. */
import type { Pod } from '#apis/core/v1.ts'
import { epochMsOf } from '#meta/time.ts'
import { isTerminalPhase } from '#model/pods.ts'

import type { KubeletMeters } from './kubelet-families.ts'

interface Span {
  readonly startMs: number
  readonly endMs: number
}

export class PodStartup {
  readonly #meters: KubeletMeters
  readonly #pulls: Span[] = []
  #initMs = 0
  #isCounted: boolean
  #isRunning = false

  /** A pod that began to start before this kubelet is not counted. */
  constructor(meters: KubeletMeters, { status }: Pod) {
    this.#meters = meters
    this.#isCounted = status.startTime !== undefined || isTerminalPhase(status.phase)
  }

  pulled(span: Span): void {
    if (!this.#isCounted) this.#pulls.push(span)
  }

  initialised(tookMs: number): void {
    this.#initMs += tookMs
  }

  /** The kubelet sees the pod running. `sinceMs` is the first sight of the pod. */
  runs(sinceMs: number, nowMs: number): void {
    if (this.#isRunning || this.#isCounted) return
    this.#isRunning = true
    this.#meters
      .family('kubelet_pod_start_duration_seconds')
      .labels()
      .observe((nowMs - sinceMs) / 1000)
  }

  /** Handles an update from the API server. */
  observePod({ metadata, spec, status }: Pod, nowMs: number): void {
    if (this.#isCounted || !this.#isRunning || !hasStarted(status)) return
    this.#isCounted = true
    const totalMs = nowMs - epochMsOf(metadata.creationTimestamp ?? '')
    this.#meters
      .family('kubelet_pod_start_total_duration_seconds')
      .labels()
      .observe(totalMs / 1000)
    if (isStateful(spec)) return
    const ownSeconds = (totalMs - spannedMs(this.#pulls) - this.#initMs) / 1000
    this.#meters.family('kubelet_pod_start_sli_duration_seconds').labels().observe(ownSeconds)
    const first = this.#meters.family('kubelet_first_network_pod_start_sli_duration_seconds').labels()
    if (spec.hostNetwork !== true && first.value === 0) first.set(ownSeconds)
  }
}

const hasStarted = ({ containerStatuses = [] }: Pod['status']): boolean =>
  containerStatuses.length > 0 && containerStatuses.every(({ state }) => state?.running !== undefined)

/** True for volumes other than those created with the pod, whose duration is unpredictable. */
const isStateful = ({ volumes = [] }: Pod['spec']): boolean =>
  volumes.some(({ secret, configMap, downwardAPI, emptyDir, projected }) =>
    [secret, configMap, downwardAPI, emptyDir, projected].every((source) => source === undefined),
  )

/** The total time covered by at least one span. Pure. */
export function spannedMs(spans: readonly Span[]): number {
  let [total, untilMs] = [0, -Infinity]
  for (const { startMs, endMs } of spans.toSorted((a, b) => a.startMs - b.startMs)) {
    total += Math.max(endMs - Math.max(startMs, untilMs), 0)
    untilMs = Math.max(untilMs, endMs)
  }
  return total
}
