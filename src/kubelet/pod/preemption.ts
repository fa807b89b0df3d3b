/** Chooses the pods to preempt when a critical pod does not fit: as few and as unimportant ones as possible. Pure. */
import type { Pod } from '#apis/core/v1.ts'
import { qosClassOf } from '#model/pod-resources.ts'

import { isCritical } from './admission-rules.ts'

/** Amounts by resource; CPU in millicores. */
export type Amounts = ReadonlyMap<string, number>

export interface Candidate {
  readonly pod: Pod
  readonly takes: Amounts
}

/** A critical pod may preempt one that is not critical; otherwise priorities decide. */
export function mayPreempt(pod: Pod, other: Pod): boolean {
  if (isCritical(pod) && !isCritical(other)) return true
  return (pod.spec.priority ?? -Infinity) > (other.spec.priority ?? Infinity)
}

/** Undefined when all candidates together do not free enough. `missing` contains positive amounts only. */
export function choosePreempted(missing: Amounts, candidates: readonly Candidate[]): Candidate[] | undefined {
  const of = (qos: string): Candidate[] => candidates.filter(({ pod }) => qosClassOf(pod) === qos)
  const [none, some, all] = [of('BestEffort'), of('Burstable'), of('Guaranteed')]
  const guaranteed = nearest(all, without(missing, [...none, ...some]))
  if (guaranteed === undefined) return undefined
  const burstable = nearest(some, without(missing, [...none, ...guaranteed]))
  if (burstable === undefined) return undefined
  const bestEffort = nearest(none, without(missing, [...burstable, ...guaranteed]))
  return bestEffort === undefined ? undefined : [...bestEffort, ...burstable, ...guaranteed]
}

/** Greedily takes the candidate that leaves the smallest deficit, the smaller one on a tie. */
function nearest(candidates: readonly Candidate[], missing: Amounts): Candidate[] | undefined {
  const chosen: Candidate[] = []
  let left = missing
  while (left.size > 0) {
    const [best] = candidates
      .filter((one) => !chosen.includes(one))
      .sort((a, b) => distance(left, a) - distance(left, b) || size(a) - size(b))
    if (best === undefined) return undefined
    chosen.push(best)
    left = without(left, [best])
  }
  return chosen
}

function without(missing: Amounts, candidates: readonly Candidate[]): Amounts {
  const left = Array.from(missing, ([name, amount]) => {
    const given = candidates.reduce((sum, { takes }) => sum + (takes.get(name) ?? 0), 0)
    return [name, amount - given] as const
  })
  return new Map(left.filter(([, amount]) => amount > 0))
}

function distance(missing: Amounts, { takes }: Candidate): number {
  return Array.from(missing, ([name, amount]) => {
    const left = Math.max(amount - (takes.get(name) ?? 0), 0)
    return (left / amount) ** 2
  }).reduce((sum, each) => sum + each, 0)
}

const size = ({ takes }: Candidate): number => (takes.get('memory') ?? 0) || (takes.get('cpu') ?? 0)
