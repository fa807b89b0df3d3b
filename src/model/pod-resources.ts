/**
 * Computes the resources of a pod: the maximum of what its containers use concurrently. Upstream's
 * component-helpers/resource, v1.36.
 */
import type { Container, ContainerStatus, Pod, PodSpec } from '#apis/core/v1.ts'
import {
  addQuantities,
  compareQuantities,
  isZeroQuantity,
  parseQuantity,
  type Quantity,
  quantitySign,
} from '#meta/quantity.ts'

type ResourceList = Readonly<Record<string, string>>

/** Amounts by resource. */
export type Amounts = ReadonlyMap<string, Quantity>

export interface PodResourcesOptions {
  /** Without `spec.overhead`. */
  readonly excludeOverhead?: boolean
  /** Includes allocated and actual resources, which differ from the spec during a resize. */
  readonly useStatus?: boolean
  /** Only the requests of containers. */
  readonly skipPodLevel?: boolean
  /** Defaults for containers without these requests, for the scheduler. */
  readonly atLeast?: Amounts
}

type Part = 'requests' | 'limits'

/** The effective requests with overhead; pod-level requests replace the sum of containers. */
export function podRequests(
  pod: Pick<Pod, 'spec' | 'status'>,
  options: PodResourcesOptions = {},
): Map<string, Quantity> {
  const { spec } = pod
  const total = aggregate(pod, 'requests', options)
  applyPodLevel(total, pod, 'requests', options)
  if (options.excludeOverhead !== true) add(total, amountsOf(spec.overhead))
  return total
}

/** The effective limits; overhead is added only to resources with a limit. */
export function podLimits(pod: Pick<Pod, 'spec' | 'status'>, options: PodResourcesOptions = {}): Map<string, Quantity> {
  const total = aggregate(pod, 'limits', options)
  applyPodLevel(total, pod, 'limits', options)
  if (options.excludeOverhead === true) return total
  for (const [name, amount] of amountsOf(pod.spec.overhead)) {
    const limit = total.get(name)
    if (limit !== undefined && !isZeroQuantity(limit)) total.set(name, addQuantities(limit, amount))
  }
  return total
}

/** The total requests of containers, without pod-level resources and overhead. */
export function containerRequests(spec: PodSpec): Map<string, Quantity> {
  return aggregate({ spec, status: {} }, 'requests', {})
}

/** The total limits of containers. */
export function containerLimits(spec: PodSpec): Map<string, Quantity> {
  return aggregate({ spec, status: {} }, 'limits', {})
}

/** The amounts of a resource list. Throws for an invalid quantity, which no stored object has. */
export function amountsOf(list: ResourceList | undefined): Map<string, Quantity> {
  return new Map(Object.entries(list ?? {}).map(([name, amount]) => [name, parseQuantity(amount)]))
}

function aggregate(pod: Pick<Pod, 'spec' | 'status'>, part: Part, options: PodResourcesOptions): Map<string, Quantity> {
  const { containers, initContainers = [] } = pod.spec
  const total = new Map<string, Quantity>()
  for (const container of containers ?? []) add(total, containerAmounts(pod, container, part, options))
  const sidecars = new Map<string, Quantity>()
  const greatest = new Map<string, Quantity>()
  for (const container of initContainers) {
    const sidecar = container.restartPolicy === 'Always'
    const own = containerAmounts(pod, container, part, sidecar ? options : { ...options, useStatus: false })
    if (sidecar) {
      add(total, own)
      add(sidecars, own)
      raise(greatest, sidecars)
    } else {
      add(own, sidecars)
      raise(greatest, own)
    }
  }
  raise(total, greatest)
  return total
}

/** A new map. */
function containerAmounts(
  pod: Pick<Pod, 'spec' | 'status'>,
  container: Container,
  part: Part,
  { useStatus, atLeast }: PodResourcesOptions,
): Map<string, Quantity> {
  const spec = container.resources?.[part]
  const status = useStatus === true ? statusOf(pod, container.name) : undefined
  const amounts = status?.resources === undefined ? amountsOf(spec) : grantedAmounts(pod, spec, status, part)
  if (part === 'requests' && atLeast !== undefined) {
    for (const [name, amount] of atLeast) if (!amounts.has(name)) amounts.set(name, amount)
  }
  return amounts
}

function statusOf({ status }: Pick<Pod, 'spec' | 'status'>, name: string): ContainerStatus | undefined {
  const same = (one: ContainerStatus): boolean => one.name === name
  return status.initContainerStatuses?.findLast(same) ?? status.containerStatuses?.findLast(same)
}

interface ResourceStatus {
  readonly resources?: { readonly limits?: ResourceList; readonly requests?: ResourceList }
  readonly allocatedResources?: ResourceList
}

/** The maximum of desired, allocated and actual resources; an infeasible request does not count. */
function grantedAmounts(
  { status }: Pick<Pod, 'spec' | 'status'>,
  desired: ResourceList | undefined,
  { resources, allocatedResources }: ResourceStatus,
  part: Part,
): Map<string, Quantity> {
  const pending = status.conditions?.find(({ type }) => type === 'PodResizePending')
  const amounts = pending?.reason === 'Infeasible' ? new Map<string, Quantity>() : amountsOf(desired)
  raise(amounts, amountsOf(resources?.[part]))
  if (part === 'requests') raise(amounts, amountsOf(allocatedResources))
  return amounts
}

function applyPodLevel(
  total: Map<string, Quantity>,
  pod: Pick<Pod, 'spec' | 'status'>,
  part: Part,
  { skipPodLevel, useStatus }: PodResourcesOptions,
): void {
  const own = pod.spec.resources?.[part]
  if (skipPodLevel === true || own === undefined) return
  const granted = useStatus === true && pod.status.resources !== undefined
  const amounts = granted ? grantedAmounts(pod, own, pod.status, part) : amountsOf(own)
  for (const name of Object.keys(own)) {
    const amount = amounts.get(name)
    if (amount !== undefined && /^(?:cpu$|memory$|hugepages-)/.test(name)) total.set(name, amount)
  }
}

function add(total: Map<string, Quantity>, more: Amounts): void {
  for (const [name, amount] of more) {
    const sum = total.get(name)
    total.set(name, sum === undefined ? amount : addQuantities(sum, amount))
  }
}

/** Raises each amount to that of `least`. */
function raise(total: Map<string, Quantity>, least: Amounts): void {
  for (const [name, amount] of least) {
    const current = total.get(name)
    if (current === undefined || compareQuantities(amount, current) > 0) total.set(name, amount)
  }
}

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort'

const qosResources = ['cpu', 'memory']

/**
 * Guaranteed: every container has equal requests and limits of CPU and memory. BestEffort: none has any. Burstable: all
 * others. Pod-level resources take precedence; `podLevel` is false if their gate is off.
 */
export function computeQosClass(spec: PodSpec, podLevel = true): QosClass {
  const podWide = podLevel && spec.resources !== undefined
  const parts = podWide ? [spec] : [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
  const requests = new Map<string, Quantity>()
  const limits = new Map<string, Quantity>()
  let limited = true
  for (const { resources } of parts) {
    add(requests, qosAmounts(resources?.requests))
    const own = qosAmounts(resources?.limits)
    add(limits, own)
    if (own.size < qosResources.length) limited = false
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort'
  return limited && sameAmounts(requests, limits) ? 'Guaranteed' : 'Burstable'
}

function sameAmounts(a: Amounts, b: Amounts): boolean {
  return (
    a.size === b.size &&
    [...a].every(([name, amount]) => {
      const other = b.get(name)
      return other !== undefined && compareQuantities(other, amount) === 0
    })
  )
}

/** The class in the status. */
export function qosClassOf({ spec, status }: Pick<Pod, 'spec' | 'status'>, podLevel = true): string {
  return status.qosClass ?? computeQosClass(spec, podLevel)
}

function qosAmounts(list: ResourceList | undefined): Map<string, Quantity> {
  return new Map(
    [...amountsOf(list)].filter(([name, amount]) => qosResources.includes(name) && quantitySign(amount) > 0),
  )
}
