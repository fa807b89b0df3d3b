/** Adds up how much CPU and memory pods request and may use, and how much nodes have. */
import type { Container, Node, Pod } from '#apis/core/v1.ts'
import { podLimits, podRequests } from '#model/pod-resources.ts'

import { amountOf, numberOf, RESOURCES, type Resource, sumOf, type Use } from './amount.ts'

export interface Demand {
  readonly requests: Use
  readonly limits: Use
}

/** Of the pods that have not ended. A pod with amounts that are no quantities counts as none. */
export function demandOf(pods: readonly Pod[]): Demand {
  const all = pods.filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed').map(demandOfPod)
  return { requests: sumOf(all.map(({ requests }) => requests)), limits: sumOf(all.map(({ limits }) => limits)) }
}

function demandOfPod({ spec, status }: Pod): Demand {
  try {
    const [requests, limits] = [podRequests({ spec, status }), podLimits({ spec, status })]
    const read = (from: typeof requests, resource: Resource): number => {
      const quantity = from.get(resource)
      return (quantity && numberOf(quantity)) ?? 0
    }
    const both = (from: typeof requests): Use => ({ cpu: read(from, 'cpu'), memory: read(from, 'memory') })
    return { requests: both(requests), limits: both(limits) }
  } catch {
    return { requests: sumOf([]), limits: sumOf([]) }
  }
}

/** False if a container may use all of its node: the sum of the limits then bounds nothing. */
export function isLimited(pods: readonly Pod[], resource: Resource): boolean {
  return pods.every(({ spec }) => spec.containers.every(({ resources }) => resources?.limits?.[resource] !== undefined))
}

/** The amounts of a node that pods can have. */
export function allocatableOf({ status }: Pick<Node, 'status'>): Use {
  const [cpu = 0, memory = 0] = RESOURCES.map((resource) => amountOf(status?.allocatable?.[resource]))
  return { cpu, memory }
}

export interface ContainerDemand {
  readonly request: number | undefined
  readonly limit: number | undefined
}

export function containerDemand({ resources }: Pick<Container, 'resources'>, resource: Resource): ContainerDemand {
  return { request: amountOf(resources?.requests?.[resource]), limit: amountOf(resources?.limits?.[resource]) }
}
