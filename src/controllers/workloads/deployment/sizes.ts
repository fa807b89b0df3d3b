/**
 * Computes the next sizes of a Deployment's ReplicaSets. Pure. Invariants: at most replicas + maxSurge pods, at least
 * replicas − maxUnavailable available ones.
 */
import type { Deployment, ReplicaSet } from '#apis/apps/v1.ts'
import { scaledValue } from '#meta/int-or-string.ts'

import { DESIRED_REPLICAS, MAX_REPLICAS, numberIn } from './annotations.ts'

/** A ReplicaSet and its next size; several are applied in order. */
export interface Resize {
  readonly set: ReplicaSet
  readonly size: number
}

export function isRolling({ spec }: Deployment): boolean {
  return spec.strategy.type === 'RollingUpdate'
}

export function replicasOf({ spec }: Deployment | ReplicaSet): number {
  return spec.replicas ?? 0
}

/** maxSurge and maxUnavailable as numbers; at least one is not zero. */
export function tolerances(deployment: Deployment): { readonly surge: number; readonly unavailable: number } {
  if (!isRolling(deployment)) return { surge: 0, unavailable: 0 }
  const replicas = replicasOf(deployment)
  const { maxSurge, maxUnavailable } = deployment.spec.strategy.rollingUpdate ?? {}
  const surge = scaledValue(maxSurge ?? 0, replicas, 'up')
  const unavailable = scaledValue(maxUnavailable ?? 0, replicas, 'down')
  // With both zero nothing could be replaced.
  const enough = surge === 0 && unavailable === 0 ? 1 : unavailable
  return { surge, unavailable: Math.min(enough, replicas) }
}

export function sum(sets: readonly ReplicaSet[], count: (set: ReplicaSet) => number | undefined): number {
  return sets.reduce((total, set) => total + (count(set) ?? 0), 0)
}

/** Available replicas, capped by the desired size: after a scale-down the status still reports more. */
const availableOf = (set: ReplicaSet): number => Math.min(set.status.availableReplicas ?? 0, replicasOf(set))

/** The allowed size of the new ReplicaSet beside the old ones. */
export function newSetSize(deployment: Deployment, others: readonly ReplicaSet[], size: number): number {
  const replicas = replicasOf(deployment)
  if (!isRolling(deployment)) return replicas
  const most = replicas + tolerances(deployment).surge
  // A reduced ReplicaSet keeps its pods until its status changes.
  const existing = sum(others, (set) => Math.max(replicasOf(set), set.status.replicas))
  const free = most - existing - size
  return free <= 0 ? size : size + Math.min(free, replicas - size)
}

/** The next scale-down of old ReplicaSets: unavailable pods first, then the oldest sets. */
export function shrinkOld(deployment: Deployment, olds: readonly ReplicaSet[], newSet: ReplicaSet): Resize[] {
  const active = byAge(olds).filter((set) => replicasOf(set) > 0)
  const least = replicasOf(deployment) - tolerances(deployment).unavailable
  const newUnavailable = replicasOf(newSet) - availableOf(newSet)
  const most = sum([...active, newSet], replicasOf) - least - newUnavailable
  if (active.length === 0 || most <= 0) return []
  const sizes = new Map(active.map((set) => [set, replicasOf(set)]))
  const broken = take(active, sizes, most, (set) => replicasOf(set) - availableOf(set))
  const spare = Math.max(0, sum([...active, newSet], availableOf) - least)
  return [...broken, ...take(active, sizes, spare, (set) => sizes.get(set) ?? 0)]
}

/** Takes up to `budget` pods, in order of the sets. */
function take(
  sets: readonly ReplicaSet[],
  sizes: Map<ReplicaSet, number>,
  budget: number,
  giving: (set: ReplicaSet) => number,
): Resize[] {
  let left = budget
  return sets.flatMap((set) => {
    const size = sizes.get(set) ?? 0
    const taken = Math.min(left, size, Math.max(0, giving(set)))
    if (taken <= 0) return []
    left -= taken
    sizes.set(set, size - taken)
    return [{ set, size: size - taken }]
  })
}

/** Sizes after `replicas` changed during a rollout: proportional, with the remainder to the largest set. */
export function proportional(deployment: Deployment, sets: readonly ReplicaSet[]): Resize[] {
  const active = sets.filter((set) => replicasOf(set) > 0)
  const replicas = replicasOf(deployment)
  const allowed = replicas > 0 ? replicas + tolerances(deployment).surge : 0
  const toAdd = allowed - sum(active, replicasOf)
  const sorted = toAdd === 0 ? active : bySize(active, toAdd > 0)
  let added = 0
  const resizes = sorted.map((set) => {
    const share = proportionOf(set, deployment, toAdd, added)
    added += share
    return { set, size: replicasOf(set) + share }
  })
  return resizes.map(({ set, size }, at) => ({ set, size: at === 0 ? Math.max(0, size + toAdd - added) : size }))
}

function proportionOf(set: ReplicaSet, deployment: Deployment, toAdd: number, added: number): number {
  if (toAdd === 0 || toAdd === added) return 0
  const share = shareOf(set, deployment)
  return toAdd > 0 ? Math.min(share, toAdd - added) : Math.max(share, toAdd - added)
}

function shareOf(set: ReplicaSet, deployment: Deployment): number {
  const [replicas, size] = [replicasOf(deployment), replicasOf(set)]
  if (replicas === 0) return -size
  // A user may have removed the annotation.
  const before = numberIn(set, MAX_REPLICAS) || (deployment.status.replicas ?? 0)
  if (before === 0) return 0
  const exact = (size * (replicas + tolerances(deployment).surge)) / before
  return Math.sign(exact) * Math.round(Math.abs(exact)) - size
}

/** Whether the ReplicaSet has all replicas and no rollout is running. */
export function isSaturated(deployment: Deployment, set: ReplicaSet | undefined): boolean {
  if (set === undefined) return false
  const replicas = replicasOf(deployment)
  return [replicasOf(set), numberIn(set, DESIRED_REPLICAS), availableOf(set)].every((count) => count === replicas)
}

export function byAge(sets: readonly ReplicaSet[]): ReplicaSet[] {
  return [...sets].sort(older)
}

function older({ metadata: a }: ReplicaSet, { metadata: b }: ReplicaSet): number {
  const [left = '', right = ''] = [a.creationTimestamp, b.creationTimestamp]
  if (left !== right) return left < right ? -1 : 1
  return (a.name ?? '') < (b.name ?? '') ? -1 : 1
}

function bySize(sets: readonly ReplicaSet[], newerFirst: boolean): ReplicaSet[] {
  return [...sets].sort((a, b) => replicasOf(b) - replicasOf(a) || (newerFirst ? older(b, a) : older(a, b)))
}
