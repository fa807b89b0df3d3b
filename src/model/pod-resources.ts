/**
 * What a pod asks of its node in all: the sum of what runs at the same time. Regular containers and sidecars run
 * together; each other init container runs alone with the sidecars before it, so what counts is the greater of both.
 * Upstream's component-helpers/resource, v1.36.
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
  /** Also what the kubelet has granted and set, which differs from the spec while a resize is under way. */
  readonly useStatus?: boolean
  /** Only what the containers ask for. */
  readonly skipPodLevel?: boolean
  /** For containers that request none of these: the scheduler's guess at what a container needs. */
  readonly atLeast?: Amounts
}

type Part = 'requests' | 'limits'

/** The effective requests, with overhead; pod-level requests count instead of the sum of the containers'. */
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

/** The effective limits; overhead is added only to resources that have a limit. */
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

/** What the containers of a spec request together, without pod-level resources and overhead. */
export function containerRequests(spec: PodSpec): Map<string, Quantity> {
  return aggregate({ spec, status: {} }, 'requests', {})
}

/** What the containers of a spec are limited to together. */
export function containerLimits(spec: PodSpec): Map<string, Quantity> {
  return aggregate({ spec, status: {} }, 'limits', {})
}

/** The amounts of a resource list. Throws on text that is no quantity, which no stored object has. */
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

/** A fresh map. */
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

interface Granted {
  readonly resources?: { readonly limits?: ResourceList; readonly requests?: ResourceList }
  readonly allocatedResources?: ResourceList
}

/** The greatest of what is wished, granted and set; a wish that cannot be fulfilled does not count. */
function grantedAmounts(
  { status }: Pick<Pod, 'spec' | 'status'>,
  wished: ResourceList | undefined,
  { resources, allocatedResources }: Granted,
  part: Part,
): Map<string, Quantity> {
  const pending = status.conditions?.find(({ type }) => type === 'PodResizePending')
  const amounts = pending?.reason === 'Infeasible' ? new Map<string, Quantity>() : amountsOf(wished)
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

/** Lifts each amount to that of `least`, where that is greater. */
function raise(total: Map<string, Quantity>, least: Amounts): void {
  for (const [name, amount] of least) {
    const current = total.get(name)
    if (current === undefined || compareQuantities(amount, current) > 0) total.set(name, amount)
  }
}

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort'

const qosResources = ['cpu', 'memory']

/**
 * Guaranteed: every container limits CPU and memory and requests just that. BestEffort: none requests or limits
 * either. Burstable: all between. Resources of the pod as a whole, where it has any, are looked at instead; `podLevel`
 * is false where their gate is off.
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

/** The class the pod was given when it was created. */
export function qosClassOf({ spec, status }: Pick<Pod, 'spec' | 'status'>, podLevel = true): string {
  return status.qosClass ?? computeQosClass(spec, podLevel)
}

function qosAmounts(list: ResourceList | undefined): Map<string, Quantity> {
  return new Map(
    [...amountsOf(list)].filter(([name, amount]) => qosResources.includes(name) && quantitySign(amount) > 0),
  )
}
