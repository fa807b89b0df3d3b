/**
 * Extended resources backed by DRA. If a device class provides `example.com/gpu` and the node does not, the scheduler
 * creates a claim for a pod that requests it. Pure.
 */
import type { Container, ContainerExtendedResourceRequest, Pod } from '#apis/core/v1.ts'
import type { DeviceRequest, ResourceClaim } from '#apis/resource/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { parseQuantity, quantityInt64 } from '#meta/quantity.ts'
import { isExtendedResource } from '#model/pod-spec/containers/resource-names.ts'
import { DEVICE_CLASS_PREFIX } from '#model/quota/pods.ts'

export const EXTENDED_CLAIM = 'resource.kubernetes.io/extended-resource-claim'
/** The placeholder name of a claim that does not exist yet; no claim can have it. */
export const UNMADE = '<extended-resources>'

export function isDeviceResource(name: string): boolean {
  return isExtendedResource(name) || name.startsWith(DEVICE_CLASS_PREFIX)
}

/** The pod's claim before its requests are known. `uid` is a temporary one. */
export function unmadeClaim({ metadata }: Pod, uid: string): ResourceClaim {
  const { namespace = '', name = '', uid: owner = '' } = metadata
  return {
    metadata: {
      namespace,
      name: UNMADE,
      uid,
      generateName: `${name}-extended-resources-`,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid: owner, controller: true }],
      annotations: { [EXTENDED_CLAIM]: 'true' },
    },
    spec: { devices: { requests: null } },
    status: {},
  }
}

export interface ExtendedRequests {
  readonly requests: DeviceRequest[]
  /** The container and resource of each request. */
  readonly mappings: ContainerExtendedResourceRequest[]
}

type Mapping = ContainerExtendedResourceRequest

interface ContainerRequest {
  readonly name: string
  readonly count: number
}

/** `classes` maps resources to device classes that back them on the node. */
export function extendedRequests({ spec }: Pod, classes: ReadonlyMap<string, string>): ExtendedRequests {
  const first = spec.initContainers ?? []
  const containers = [...first, ...spec.containers]
  const isBrief = (at: number): boolean => at < first.length && containers[at]?.restartPolicy !== 'Always'
  const requests: DeviceRequest[] = []
  const mappings: Mapping[] = []
  for (const [resource, deviceClassName] of [...classes].sort(([a], [b]) => compareText(a, b))) {
    const lasting: (ContainerRequest | undefined)[] = containers.map((container, at) =>
      isBrief(at) ? undefined : containerRequestOf(container, at, resource),
    )
    const brief: {
      readonly at: number
      readonly own: ContainerRequest | undefined
      readonly used: readonly ContainerRequest[]
    }[] = []
    for (const [at, container] of containers.entries()) {
      const own = containerRequestOf(container, at, resource)
      if (isBrief(at) && own !== undefined) brief.push({ at, ...reuseLaterRequests(own, lasting.slice(at)) })
    }
    // Init containers run one after the other, so they share the largest request.
    const needed = brief.flatMap(({ own }) => own ?? [])
    const most = needed.find(({ count }) => count === Math.max(...needed.map((one) => one.count)))
    const map = (at: number, to: ContainerRequest): Mapping => ({
      containerName: containers[at]?.name ?? '',
      resourceName: resource,
      requestName: to.name,
    })
    for (const [at, own] of lasting.entries()) if (own !== undefined) mappings.push(map(at, own))
    for (const { at, own, used } of brief)
      mappings.push(...[...used, ...(own === undefined ? [] : [most ?? own])].map((to) => map(at, to)))
    for (const { name, count } of [most, ...lasting].filter((one) => one !== undefined))
      requests.push({ name, exactly: { deviceClassName, allocationMode: 'ExactCount', count } })
  }
  return { requests: requests.sort((a, b) => compareText(a.name, b.name)), mappings }
}

function containerRequestOf({ resources }: Container, at: number, resource: string): ContainerRequest | undefined {
  const requests = resources?.requests ?? {}
  const count = requests[resource] === undefined ? 0 : Number(quantityInt64(parseQuantity(requests[resource])) ?? 0)
  const place = Object.keys(requests).sort(compareText).indexOf(resource)
  return count === 0 ? undefined : { name: `container-${at}-request-${place}`, count }
}

/** An init container uses devices of later containers; only the remainder is requested for it. */
function reuseLaterRequests(
  { name, count }: ContainerRequest,
  later: readonly (ContainerRequest | undefined)[],
): { readonly own: ContainerRequest | undefined; readonly used: readonly ContainerRequest[] } {
  const used: ContainerRequest[] = []
  let left = count
  for (const one of later) {
    if (one === undefined) continue
    used.push(one)
    left -= one.count
    if (left <= 0) return { own: undefined, used }
  }
  return { own: { name, count: left }, used }
}
