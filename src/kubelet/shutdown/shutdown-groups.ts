/** Groups pods by priority for a graceful node shutdown, with their grace periods. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { durationMs } from '#lib/go/duration.ts'

/** Fields of KubeletConfiguration. */
export interface ShutdownSettings {
  readonly shutdownGracePeriod: string
  readonly shutdownGracePeriodCriticalPods: string
  readonly shutdownGracePeriodByPodPriority?: readonly ShutdownPeriod[]
}

export interface ShutdownPeriod {
  readonly priority: number
  readonly shutdownGracePeriodSeconds: number
}

export interface ShutdownGroup extends ShutdownPeriod {
  readonly pods: readonly Pod[]
}

const CRITICAL_PRIORITY = 2_000_000_000

/** Sorted by priority, lowest first; empty: no graceful shutdown. */
export function periodsOf(settings: ShutdownSettings, isByPriority = true): readonly ShutdownPeriod[] {
  const given = isByPriority ? (settings.shutdownGracePeriodByPodPriority ?? []) : []
  if (given.length > 0) return given.toSorted((a, b) => a.priority - b.priority)
  const allMs = durationMs(settings.shutdownGracePeriod)
  const criticalMs = durationMs(settings.shutdownGracePeriodCriticalPods)
  if (allMs === 0 || criticalMs > allMs) return []
  const seconds = (ms: number): number => Math.trunc(ms / 1000)
  return [
    { priority: 0, shutdownGracePeriodSeconds: seconds(allMs - criticalMs) },
    { priority: CRITICAL_PRIORITY, shutdownGracePeriodSeconds: seconds(criticalMs) },
  ]
}

export function secondsOf(periods: readonly ShutdownPeriod[]): number {
  return periods.reduce((sum, { shutdownGracePeriodSeconds }) => sum + shutdownGracePeriodSeconds, 0)
}

/** In shutdown order. A pod belongs to the highest period priority that is not above its own, or to the lowest. */
export function groupsOf(periods: readonly ShutdownPeriod[], pods: readonly Pod[]): readonly ShutdownGroup[] {
  const groupIndexOf = ({ spec: { priority = 0 } }: Pod): number =>
    Math.max(
      periods.findLastIndex((period) => period.priority <= priority),
      0,
    )
  const byGroup = Map.groupBy(pods, groupIndexOf)
  return periods.map((period, at) => ({ ...period, pods: byGroup.get(at) ?? [] }))
}

/** The grace period of a pod in the group. */
export function graceOf({ spec: { terminationGracePeriodSeconds: own } }: Pod, group: ShutdownPeriod): number {
  return Math.min(own ?? Infinity, group.shutdownGracePeriodSeconds)
}
