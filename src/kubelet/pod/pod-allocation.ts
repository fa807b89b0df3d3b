/**
 * The resources that the kubelet has allocated to the containers of a pod. They differ from the spec while an in-place
 * resize is pending. Pure.
 */
import type { Container, Pod, PodSpec, ResourceRequirements } from '#apis/core/v1.ts'
import { parseQuantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'

export interface Allocation {
  /** Includes init containers. */
  readonly containers: Readonly<Record<string, ResourceRequirements>>
  /** Pod-level resources. */
  readonly pod?: ResourceRequirements | undefined
}

export function allocationOf({ containers, initContainers = [], resources }: PodSpec): Allocation {
  const all = [...initContainers, ...containers].map(({ name, resources: own }) => [name, own ?? {}] as const)
  return { containers: Object.fromEntries(all), pod: resources }
}

/** The pod with its allocated resources; the same object when they equal the spec. */
export function withAllocation(pod: Pod, allocation: Allocation): Pod {
  if (isGranted(pod.spec, allocation)) return pod
  const granted = (container: Container): Container => {
    const resources = allocation.containers[container.name]
    return resources === undefined ? container : { ...container, resources }
  }
  const { initContainers, containers, resources: _, ...rest } = pod.spec
  const spec: PodSpec = {
    ...rest,
    ...(initContainers !== undefined && { initContainers: initContainers.map(granted) }),
    containers: containers.map(granted),
    ...(allocation.pod !== undefined && { resources: allocation.pod }),
  }
  return { ...pod, spec }
}

/** True if the spec equals the allocation. */
export function isGranted({ containers, initContainers = [], resources }: PodSpec, allocation: Allocation): boolean {
  if (!isSame(resources, allocation.pod)) return false
  return [...initContainers, ...containers].every(({ name, resources: own }) => {
    const granted = allocation.containers[name]
    return granted === undefined || isSame(own, granted)
  })
}

const PARTS = ['requests', 'limits'] as const

function isSame(a: ResourceRequirements = {}, b: ResourceRequirements = {}): boolean {
  return PARTS.every((part) => {
    const names = new Set([...Object.keys(a[part] ?? {}), ...Object.keys(b[part] ?? {})])
    return [...names].every((name) => nanosOf(a[part]?.[name]) === nanosOf(b[part]?.[name]))
  })
}

const nanosOf = (amount: string | undefined): number | undefined =>
  amount === undefined ? undefined : quantityMilliValue(parseQuantity(amount))

/** Kernel units: CPU in millicores, memory in bytes, 0 for unset. */
export interface Measures {
  readonly cpu: { readonly request: number; readonly limit: number }
  readonly memory: { readonly request: number; readonly limit: number }
}

export type Resizable = keyof Measures

/** Pod-level limits apply to containers without a limit. */
export function measuresOf(own: ResourceRequirements = {}, ofPod: ResourceRequirements = {}): Measures {
  const cpu = (list?: Readonly<Record<string, string>>): number =>
    quantityMilliValue(parseQuantity(list?.['cpu'] ?? '0'))
  const memory = (list?: Readonly<Record<string, string>>): number =>
    quantityValue(parseQuantity(list?.['memory'] ?? '0'))
  const limits = { ...ofPod.limits, ...own.limits }
  return {
    cpu: { request: cpu(own.requests), limit: cpu(limits) },
    memory: { request: memory(own.requests), limit: memory(limits) },
  }
}

/** The resources of a container that have to be resized. */
export function resizesOf(actual: Measures, wanted: Measures): Resizable[] {
  return (['memory', 'cpu'] as const).filter(
    (name) => actual[name].request !== wanted[name].request || actual[name].limit !== wanted[name].limit,
  )
}

/** True if the resize needs a restart of the container. */
export function needsRestart({ resizePolicy = [] }: Pick<Container, 'resizePolicy'>, resized: Resizable[]): boolean {
  return resizePolicy.some(
    ({ resourceName, restartPolicy }) =>
      restartPolicy === 'RestartContainer' && resized.some((name) => name === resourceName),
  )
}

/** The desired resources as JSON, for events. */
export function resizeText({ metadata, spec }: Pod, more: { generation?: number | undefined; error?: string }): string {
  const of = (containers: readonly Container[]): object[] =>
    containers.map(({ name, resources }) => ({ name, resources: ordered(resources) }))
  const { initContainers = [], containers } = spec
  return JSON.stringify({
    ...(initContainers.length > 0 && { initContainers: of(initContainers) }),
    containers: of(containers),
    generation: more.generation ?? metadata.generation ?? 0,
    ...(more.error !== undefined && { error: more.error }),
  })
}

/** In the key order of Go maps. */
function ordered({ limits, requests }: ResourceRequirements): object {
  const sorted = (list: Readonly<Record<string, string>>): object =>
    Object.fromEntries(Object.entries(list).sort(([a], [b]) => (a < b ? -1 : 1)))
  return { ...(limits && { limits: sorted(limits) }), ...(requests && { requests: sorted(requests) }) }
}

/** Order of retried resizes: decreases first, then priority, QoS class and waiting time. */
export function compareResizes(a: PendingResize, b: PendingResize): number {
  return (
    Number(a.isMore) - Number(b.isMore) ||
    b.priority - a.priority ||
    Number(b.isGuaranteed) - Number(a.isGuaranteed) ||
    a.sinceMs - b.sinceMs
  )
}

export interface PendingResize {
  /** The resize increases a request. */
  readonly isMore: boolean
  readonly priority: number
  readonly isGuaranteed: boolean
  readonly sinceMs: number
}
