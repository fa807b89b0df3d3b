/** Scores a node by its resource use after placement, with upstream's integer arithmetic. */
import { amountOf } from '../cluster/amounts.ts'
import type { NodeInfo } from '../cluster/node-info.ts'
import type { PodInfo } from '../cluster/pod-info.ts'
import { MAX_SCORE } from './framework.ts'

export interface ResourceWeight {
  readonly name: string
  readonly weight: number
}

export interface Strategy {
  readonly type: string
  readonly resources?: readonly ResourceWeight[]
  readonly requestedToCapacityRatio?: { readonly shape: readonly ShapePoint[] }
}

/** The score, 0 to 10, at a utilization in percent. */
export interface ShapePoint {
  readonly utilization: number
  readonly score: number
}

export interface Allocation {
  /** Zero: the node lacks the resource, which is then ignored. */
  readonly all: number
  readonly before: number
  readonly after: number
}

/** `as` selects requests with or without defaults. */
export function allocationOf(
  resources: readonly ResourceWeight[],
  pod: PodInfo,
  node: NodeInfo,
  as: 'likely' | 'requests',
): Allocation[] {
  const taken = as === 'likely' ? node.likely : node.requested
  return resources.map(({ name }) => {
    const wanted = amountOf(pod[as], name)
    const isPlain = name === 'cpu' || name === 'memory' || name === 'ephemeral-storage'
    // Extended resources count only for pods that request them.
    if (wanted === 0 && !isPlain) return { all: 0, before: 0, after: 0 }
    const before = amountOf(taken, name)
    return { all: amountOf(node.allocatable, name), before, after: before + wanted }
  })
}

export function strategyScore(
  { type, requestedToCapacityRatio }: Strategy,
  resources: readonly ResourceWeight[],
  allocations: readonly Allocation[],
): number {
  const shape = requestedToCapacityRatio?.shape ?? []
  let sum = 0
  let weights = 0
  for (const [at, { all, after }] of allocations.entries()) {
    if (all === 0) continue
    const { weight } = resources[at] as ResourceWeight
    const score = oneScore(type, shape, all, after)
    if (type === 'RequestedToCapacityRatio' && score === 0) continue
    sum += score * weight
    weights += weight
  }
  if (weights === 0) return 0
  return type === 'RequestedToCapacityRatio' ? Math.round(sum / weights) : Math.floor(sum / weights)
}

function oneScore(type: string, shape: readonly ShapePoint[], all: number, after: number): number {
  switch (type) {
    case 'MostAllocated':
      return Math.floor((Math.min(after, all) * MAX_SCORE) / all)
    case 'RequestedToCapacityRatio':
      return onShape(shape, after > all ? 100 : Math.floor((after * 100) / all))
    default:
      return after > all ? 0 : Math.floor(((all - after) * MAX_SCORE) / all)
  }
}

/** Linear interpolation; constant beyond both ends. */
function onShape(shape: readonly ShapePoint[], percent: number): number {
  const scaled = shape.map(({ utilization, score }) => ({ utilization, score: score * (MAX_SCORE / 10) }))
  const at = scaled.findIndex(({ utilization }) => percent <= utilization)
  if (at === -1) return scaled.at(-1)?.score ?? 0
  const right = scaled[at] as ShapePoint
  const left = scaled[at - 1]
  if (left === undefined) return right.score
  const rise = (right.score - left.score) * (percent - left.utilization)
  return left.score + Math.trunc(rise / (right.utilization - left.utilization))
}

/** How much the pod balances resource use, around 75. */
export function balanceScore(allocations: readonly Allocation[]): number {
  const evenness = (part: 'before' | 'after'): number => {
    const fractions = allocations.filter(({ all }) => all > 0).map((one) => Math.min(1, one[part] / one.all))
    return Math.trunc((1 - deviation(fractions)) * MAX_SCORE)
  }
  const half = MAX_SCORE / 2
  return half + Math.trunc((half + evenness('after') - evenness('before')) / 2)
}

function deviation(fractions: readonly number[]): number {
  if (fractions.length < 2) return 0
  if (fractions.length === 2) return Math.abs(((fractions[0] as number) - (fractions[1] as number)) / 2)
  const mean = fractions.reduce((sum, one) => sum + one, 0) / fractions.length
  return Math.sqrt(fractions.reduce((sum, one) => sum + (one - mean) ** 2, 0) / fractions.length)
}
