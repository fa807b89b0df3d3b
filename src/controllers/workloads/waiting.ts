/** Computes when an object must be requeued because time alone changes its status. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { findCondition } from '#meta/conditions.ts'
import { epochMsOf } from '#meta/time.ts'
import { conditionsOf, isAvailable, isReady } from '#model/pods.ts'

/** The time until the next pod is ready for `minReadySeconds`; undefined if none is due. */
export function nextAvailableMs(pods: readonly Pod[], minReadySeconds: number, nowMs: number): number | undefined {
  if (minReadySeconds === 0) return undefined
  const waits = pods
    .filter((pod) => isReady(pod) && !isAvailable(pod, minReadySeconds, nowMs))
    .map(({ status }) => findCondition(conditionsOf(status.conditions), 'Ready')?.lastTransitionTime)
    .filter((since) => since !== undefined)
    .map((since) => epochMsOf(since) + minReadySeconds * 1000 - nowMs)
  return waits.length === 0 ? undefined : Math.max(0, Math.min(...waits))
}
