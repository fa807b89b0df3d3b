/**
 * Extended resources that devices stand for: a pod that asks for `example.com/gpu: 2` gets a claim of its own, made by the
 * scheduler, where the node has no such resource but a device class does. Pure.
 */
import type { Container, ContainerExtendedResourceRequest, Pod } from '#apis/core/v1.ts'
import type { DeviceRequest, ResourceClaim } from '#apis/resource/v1.ts'
import { compareText } from '#lib/go-text.ts'
import { parseQuantity, quantityInt64 } from '#meta/quantity.ts'
import { isExtendedResource } from '#model/pod-spec/resource-names.ts'
import { DEVICE_CLASS_PREFIX } from '#model/quota/pods.ts'

export const EXTENDED_CLAIM = 'resource.kubernetes.io/extended-resource-claim'
/** No claim can be called so: it has not been made yet. */
export const UNMADE = '<extended-resources>'

export function isDeviceResource(name: string): boolean {
  return isExtendedResource(name) || name.startsWith(DEVICE_CLASS_PREFIX)
}

/** The claim of a pod before it is known what is asked of the node. `uid`: for as long as it has none. */
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
  /** Which container gets what from which request. */
  readonly mappings: ContainerExtendedResourceRequest[]
}

type Mapping = ContainerExtendedResourceRequest

interface Asked {
  readonly name: string
  readonly count: number
}

/** `classes`: by resource, those that devices stand for on the node. */
export function extendedRequests({ spec }: Pod, classes: ReadonlyMap<string, string>): ExtendedRequests {
  const first = spec.initContainers ?? []
  const containers = [...first, ...spec.containers]
  const isBrief = (at: number): boolean => at < first.length && containers[at]?.restartPolicy !== 'Always'
  const requests: DeviceRequest[] = []
  const mappings: Mapping[] = []
  for (const [resource, deviceClassName] of [...classes].sort(([a], [b]) => compareText(a, b))) {
    const lasting: (Asked | undefined)[] = containers.map((container, at) =>
      isBrief(at) ? undefined : ask(container, at, resource),
    )
    const brief: { readonly at: number; readonly own: Asked | undefined; readonly used: readonly Asked[] }[] = []
    for (const [at, container] of containers.entries()) {
      const own = ask(container, at, resource)
      if (isBrief(at) && own !== undefined) brief.push({ at, ...borrowing(own, lasting.slice(at)) })
    }
    // Those that run one after the other share what the greediest of them needs.
    const needed = brief.flatMap(({ own }) => own ?? [])
    const most = needed.find(({ count }) => count === Math.max(...needed.map((one) => one.count)))
    const map = (at: number, to: Asked): Mapping => ({
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

function ask({ resources }: Container, at: number, resource: string): Asked | undefined {
  const asked = resources?.requests ?? {}
  const count = asked[resource] === undefined ? 0 : Number(quantityInt64(parseQuantity(asked[resource])) ?? 0)
  const place = Object.keys(asked).sort(compareText).indexOf(resource)
  return count === 0 ? undefined : { name: `container-${at}-request-${place}`, count }
}

/** A container that ends before others begin uses what is theirs later; only the rest is its own. */
function borrowing(
  { name, count }: Asked,
  later: readonly (Asked | undefined)[],
): { readonly own: Asked | undefined; readonly used: readonly Asked[] } {
  const used: Asked[] = []
  let left = count
  for (const one of later) {
    if (one === undefined) continue
    used.push(one)
    left -= one.count
    if (left <= 0) return { own: undefined, used }
  }
  return { own: { name, count: left }, used }
}
