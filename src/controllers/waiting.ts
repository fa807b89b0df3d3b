/** When to look again at what no event will tell. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { findCondition } from '#meta/conditions.ts'
import { epochMsOf } from '#meta/time.ts'
import { conditionsOf, isAvailable, isReady } from '#model/pods.ts'

/** How long until the next of them has been ready for `minReadySeconds`; undefined when none is on the way. */
export function nextAvailableMs(pods: readonly Pod[], minReadySeconds: number, nowMs: number): number | undefined {
  if (minReadySeconds === 0) return undefined
  const waits = pods
    .filter((pod) => isReady(pod) && !isAvailable(pod, minReadySeconds, nowMs))
    .map(({ status }) => findCondition(conditionsOf(status.conditions), 'Ready')?.lastTransitionTime)
    .filter((since) => since !== undefined)
    .map((since) => epochMsOf(since) + minReadySeconds * 1000 - nowMs)
  return waits.length === 0 ? undefined : Math.max(0, Math.min(...waits))
}
