/** Computes the allowed disruptions of a PodDisruptionBudget. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '#apis/policy/v1.ts'
import { isBeingDeleted } from '#meta/object.ts'
import { epochMsOf } from '#meta/time.ts'
import { isReady } from '#model/pods.ts'

/** How long a granted eviction may take until the pod is deleted. */
export const EVICTION_MS = 120_000

export type Counts = Pick<
  PodDisruptionBudgetStatus,
  'currentHealthy' | 'desiredHealthy' | 'expectedPods' | 'disruptionsAllowed'
>

/** A percentage needs the expected scale from the pods' controllers; a number does not. */
export function needsScale({ spec }: PodDisruptionBudget): boolean {
  return spec?.maxUnavailable !== undefined || typeof spec?.minAvailable === 'string'
}

export function countsOf({ spec }: PodDisruptionBudget, expectedPods: number, currentHealthy: number): Counts {
  const { minAvailable, maxUnavailable } = spec ?? {}
  const desiredHealthy =
    maxUnavailable === undefined
      ? shareOf(minAvailable ?? 0, expectedPods)
      : Math.max(0, expectedPods - shareOf(maxUnavailable, expectedPods))
  const allowed = expectedPods > 0 ? Math.max(0, currentHealthy - desiredHealthy) : 0
  return { currentHealthy, desiredHealthy, expectedPods, disruptionsAllowed: allowed }
}

/** Percentages round up. */
function shareOf(value: number | string, total: number): number {
  return typeof value === 'number' ? value : Math.ceil((Number.parseInt(value, 10) * total) / 100)
}

export interface DisruptionState {
  /** Granted evictions of pods that still exist, by name. */
  readonly pods: Readonly<Record<string, string>>
  readonly overdue: readonly Pod[]
  readonly recheckMs: number | undefined
}

export function disruptedOf({ status }: PodDisruptionBudget, pods: readonly Pod[], nowMs: number): DisruptionState {
  const granted = status?.disruptedPods ?? {}
  const waited = pods.flatMap((pod) => {
    const since = isBeingDeleted(pod) ? undefined : granted[pod.metadata.name ?? '']
    return since === undefined ? [] : [{ pod, since, leftMs: epochMsOf(since) + EVICTION_MS - nowMs }]
  })
  const open = waited.filter(({ leftMs }) => leftMs > 0)
  return {
    pods: Object.fromEntries(open.map(({ pod, since }) => [pod.metadata.name ?? '', since])),
    overdue: waited.filter(({ leftMs }) => leftMs <= 0).map(({ pod }) => pod),
    recheckMs: open.length === 0 ? undefined : Math.min(...open.map(({ leftMs }) => leftMs)),
  }
}

export function healthyOf(pods: readonly Pod[], disrupted: Readonly<Record<string, string>>): number {
  const counts = (pod: Pod): boolean =>
    !isBeingDeleted(pod) && isReady(pod) && disrupted[pod.metadata.name ?? ''] === undefined
  return pods.filter(counts).length
}
