/** Creates the DisruptionTarget condition, and the patch that appends it to existing conditions. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { timeOf } from '#meta/time.ts'

import { conditionsOf } from './pods.ts'

const TYPE = 'DisruptionTarget'

export interface Disruption {
  readonly reason: string
  readonly message: string
  readonly observedGeneration?: number
}

/** A part of a strategic merge patch of the status. Without the order the server would put the new condition first. */
export function disruptionTarget({ status }: Pod, why: Disruption, nowMs: number): object {
  const there = conditionsOf(status.conditions)
  const known = there.find(({ type }) => type === TYPE)
  const lastTransitionTime = known?.status === 'True' ? known.lastTransitionTime : timeOf(nowMs)
  const types = new Set([...there.map(({ type }) => type), TYPE])
  return {
    '$setElementOrder/conditions': Array.from(types, (type) => ({ type })),
    conditions: [{ type: TYPE, status: 'True', ...why, lastTransitionTime }],
  }
}
