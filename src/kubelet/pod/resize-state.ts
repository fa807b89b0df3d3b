/** Tracks the in-place resize of one pod and the remaining steps. Pure. */
import type { Pod, PodCondition, PodSpec } from '#apis/core/v1.ts'
import { compareQuantities, parseQuantity } from '#meta/quantity.ts'
import { timeOf } from '#meta/time.ts'
import { podRequests, qosClassOf } from '#model/pod-resources.ts'

import { type ContainerRecord, idOf, isRunning } from './container-runs.ts'
import {
  type Allocation,
  type Measures,
  measuresOf,
  needsRestart,
  type PendingResize,
  resizesOf,
  withAllocation,
} from './pod-allocation.ts'

export type ResizeCondition = Pick<PodCondition, 'reason' | 'message' | 'observedGeneration'> & {
  readonly sinceMs: number
}

export interface ResizeState {
  allocation: Allocation
  /** A resize that is not allocated yet. */
  pending: ResizeCondition | undefined
  /** A resize that is allocated but not applied yet. */
  inProgress: ResizeCondition | undefined
}

/** A running container whose cgroup differs from its allocation. */
export interface ContainerResize {
  readonly record: ContainerRecord
  readonly id: string
  readonly actual: Measures
  readonly wanted: Measures
}

export function containerResizes(spec: PodSpec, records: readonly ContainerRecord[]): ContainerResize[] {
  return records.flatMap((record): ContainerResize[] => {
    const id = idOf(record)
    if (id === undefined || record.actual === undefined || record.role === 'ephemeral' || !isRunning(record)) return []
    const actual = measuresOf(record.actual, spec.resources)
    const wanted = measuresOf(record.spec.resources, spec.resources)
    return resizesOf(actual, wanted).length === 0 ? [] : [{ record, id, actual, wanted }]
  })
}

/** True if the policy of the container demands a restart for this resize. */
export function restartsForResize({ record, actual, wanted }: ContainerResize): boolean {
  return needsRestart(record.spec, resizesOf(actual, wanted))
}

/** The position of a pending resize in the retry order; undefined without one. */
export function pendingResizeOf(desired: Pod, { pending, allocation }: ResizeState): PendingResize | undefined {
  if (pending === undefined) return undefined
  const has = podRequests(withAllocation(desired, allocation))
  const isMore = Array.from(podRequests(desired)).some(
    ([name, amount]) => compareQuantities(amount, has.get(name) ?? NONE) > 0,
  )
  const isGuaranteed = qosClassOf(desired) === 'Guaranteed'
  return { isMore, isGuaranteed, priority: desired.spec.priority ?? 0, sinceMs: pending.sinceMs }
}

const NONE = parseQuantity('0')

export function resizeConditions({ pending, inProgress }: ResizeState, nowMs: number): PodCondition[] {
  return [...conditionOf('PodResizePending', pending, nowMs), ...conditionOf('PodResizeInProgress', inProgress, nowMs)]
}

function conditionOf(type: string, condition: ResizeCondition | undefined, nowMs: number): PodCondition[] {
  if (condition === undefined) return []
  const { sinceMs, reason, message, observedGeneration } = condition
  return [
    {
      type,
      ...(observedGeneration !== undefined && { observedGeneration }),
      status: 'True',
      lastProbeTime: timeOf(nowMs),
      lastTransitionTime: timeOf(sinceMs),
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message }),
    },
  ]
}
