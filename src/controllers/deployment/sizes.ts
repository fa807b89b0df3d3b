/**
 * How large each ReplicaSet of a Deployment is to be next. Pure. Two promises hold in every step: never more pods than
 * replicas and surge, never fewer available ones than replicas less what may be unavailable.
 */
import type { Deployment, ReplicaSet } from '#apis/apps/v1.ts'
import { scaledValue } from '#meta/int-or-string.ts'

import { DESIRED_REPLICAS, MAX_REPLICAS, numberIn } from './annotations.ts'

/** A set and its next size; several are done one after the other. */
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

/** The most pods above `replicas`, and the most below that are missing: not both are zero. */
export function tolerances(deployment: Deployment): { readonly surge: number; readonly unavailable: number } {
  if (!isRolling(deployment)) return { surge: 0, unavailable: 0 }
  const replicas = replicasOf(deployment)
  const { maxSurge, maxUnavailable } = deployment.spec.strategy.rollingUpdate ?? {}
  const surge = scaledValue(maxSurge ?? 0, replicas, 'up')
  const unavailable = scaledValue(maxUnavailable ?? 0, replicas, 'down')
  // With neither nothing could ever be replaced.
  const enough = surge === 0 && unavailable === 0 ? 1 : unavailable
  return { surge, unavailable: Math.min(enough, replicas) }
}

export function sum(sets: readonly ReplicaSet[], count: (set: ReplicaSet) => number | undefined): number {
  return sets.reduce((total, set) => total + (count(set) ?? 0), 0)
}

/** What a set can be relied on for: when it has just been made smaller, its status still tells of more. */
const availableOf = (set: ReplicaSet): number => Math.min(set.status.availableReplicas ?? 0, replicasOf(set))

/** How large the set of the current template may be, beside the others. */
export function newSetSize(deployment: Deployment, others: readonly ReplicaSet[], size: number): number {
  const replicas = replicasOf(deployment)
  if (!isRolling(deployment)) return replicas
  const most = replicas + tolerances(deployment).surge
  // A set that was made smaller has its pods until it says otherwise.
  const held = sum(others, (set) => Math.max(replicasOf(set), set.status.replicas))
  const free = most - held - size
  return free <= 0 ? size : size + Math.min(free, replicas - size)
}

/** What may be taken from the sets of former templates: first what does not work anyway, the oldest sets first. */
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

/** Takes up to `budget` pods, from each set in turn what it can give. */
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

/**
 * The sizes after somebody changed `replicas` in the middle of a rollout: every set keeps its share, what is left over
 * goes to the largest.
 */
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
  // Somebody may have taken the annotation away.
  const before = numberIn(set, MAX_REPLICAS) || (deployment.status.replicas ?? 0)
  if (before === 0) return 0
  const exact = (size * (replicas + tolerances(deployment).surge)) / before
  return Math.sign(exact) * Math.round(Math.abs(exact)) - size
}

/** Whether it has everything that is wanted, as when nothing is being rolled out. */
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
