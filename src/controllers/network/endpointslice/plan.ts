/**
 * Plans the EndpointSlices of a Service with as few writes as possible. Endpoints stay in their slice, slices are
 * filled only if they change anyway, and obsolete slices are reused. Pure.
 */
import type { Endpoint, EndpointPort, EndpointSlice } from '#apis/discovery/v1.ts'
import { type ObjectMeta, semanticEqual } from '#meta/object.ts'

import type { HintFunction } from './hints.ts'

/** Endpoints with the same ports. */
export interface PortGroup {
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly Endpoint[]
}

export interface SlicePlan {
  readonly create: readonly SliceDraft[]
  readonly update: readonly EndpointSlice[]
  readonly remove: readonly EndpointSlice[]
}

export type SliceDraft = Pick<EndpointSlice, 'metadata' | 'addressType' | 'endpoints' | 'ports'>

export interface SliceOptions {
  readonly addressType: string
  readonly groups: readonly PortGroup[]
  readonly maxEndpoints: number
  /** Labels and owner of every slice, and the name prefix of new ones. */
  readonly metadata: ObjectMeta
  readonly annotations: Readonly<Record<string, string>>
  /** Whether an otherwise unchanged slice may stay. */
  readonly isCurrent: (slice: EndpointSlice) => boolean
  /** Whether to create an empty slice if there are no endpoints. */
  readonly needsOne: boolean
  /** Adds hints. Default: none. */
  readonly hint?: HintFunction
}

export function planSlices(existing: readonly EndpointSlice[], wanted: SliceOptions): SlicePlan {
  const rest = new Map(Map.groupBy(existing, ({ ports }) => portsKey(ports ?? [])))
  const plans = wanted.groups.map(({ ports, endpoints }) => {
    const key = portsKey(ports)
    const slices = rest.get(key) ?? []
    rest.delete(key)
    return planGroup(slices, { ports, endpoints }, wanted)
  })
  if (wanted.hint !== undefined) hintAll(plans, wanted.hint)
  return settle(existing, [...rest.values()].flat(), plans, wanted)
}

/** Independent of the order of ports. */
export function portsKey(ports: readonly EndpointPort[]): string {
  const texts = ports.map(({ name = '', port, protocol = '', appProtocol = '' }) =>
    JSON.stringify([name, port ?? 0, protocol, appProtocol]),
  )
  return texts.toSorted().join()
}

/** Identifies an endpoint; conditions and hints may change. */
function endpointKey({ addresses, hostname = '', nodeName = '', zone = '', targetRef }: Endpoint): string {
  return JSON.stringify([
    addresses,
    hostname,
    nodeName,
    zone,
    targetRef?.kind,
    targetRef?.namespace,
    targetRef?.name,
    targetRef?.uid,
  ])
}

interface Change {
  readonly slice: EndpointSlice
  endpoints: Endpoint[]
  isChanged: boolean
}

interface GroupPlan {
  readonly changes: readonly Change[]
  readonly create: readonly SliceDraft[]
}

/** Also writes slices whose hints alone changed. */
function hintAll(plans: readonly GroupPlan[], hint: HintFunction): void {
  const changes = plans.flatMap((plan) => plan.changes)
  const create = plans.flatMap((plan) => plan.create)
  const made = create.map(({ endpoints }) => ({ endpoints: endpoints ?? [], isChanged: true }))
  hint([...changes, ...made]).forEach((endpoints, at) => {
    const change: Change | undefined = changes[at]
    const draft = create[at - changes.length]
    if (draft !== undefined) draft.endpoints = [...endpoints]
    else if (change !== undefined && change.endpoints !== endpoints) {
      change.endpoints = [...endpoints]
      change.isChanged = true
    }
  })
}

function planGroup(slices: readonly EndpointSlice[], { ports, endpoints }: PortGroup, wanted: SliceOptions): GroupPlan {
  const missing = new Map(endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]))
  const changes = slices.map((slice) => keepWanted(slice, missing, wanted))
  const room = ({ endpoints: filled }: Change): number => wanted.maxEndpoints - filled.length
  const fill = (change: Change): void => {
    for (const [key, endpoint] of missing) {
      if (room(change) <= 0) return
      change.endpoints.push(endpoint)
      missing.delete(key)
      change.isChanged = true
    }
  }
  // Fullest first.
  const changed = changes.filter(({ isChanged, endpoints: filled }) => isChanged && filled.length > 0)
  for (const change of changed.toSorted((a, b) => room(a) - room(b))) fill(change)
  const create: SliceDraft[] = []
  while (missing.size > 0) {
    const fitting = changes.filter((change) => !change.isChanged && room(change) >= missing.size)
    const fullest = fitting.toSorted((a, b) => room(a) - room(b))[0]
    if (fullest !== undefined) fill(fullest)
    else {
      const keys = [...missing.keys()].slice(0, wanted.maxEndpoints)
      create.push(
        draftOf(
          wanted,
          ports,
          keys.map((key) => missing.get(key) as Endpoint),
        ),
      )
      for (const key of keys) missing.delete(key)
    }
  }
  return { changes, create }
}

/** Removes the slice's endpoints from `missing`. */
function keepWanted(slice: EndpointSlice, missing: Map<string, Endpoint>, { isCurrent }: SliceOptions): Change {
  const kept: Endpoint[] = []
  let isChanged = !isCurrent(slice)
  for (const endpoint of slice.endpoints ?? []) {
    const key = endpointKey(endpoint)
    const wanted = missing.get(key)
    if (wanted === undefined) isChanged = true
    else {
      const isSame = semanticEqual({ ...endpoint, hints: undefined }, { ...wanted, hints: undefined })
      kept.push(isSame ? endpoint : wanted)
      if (!isSame) isChanged = true
      missing.delete(key)
    }
  }
  return { slice, endpoints: kept, isChanged }
}

function draftOf(
  { addressType, metadata, annotations }: SliceOptions,
  ports: readonly EndpointPort[],
  endpoints: readonly Endpoint[],
): SliceDraft {
  return {
    metadata: { ...metadata, annotations: { ...annotations } },
    addressType,
    endpoints: endpoints.length === 0 ? null : [...endpoints],
    ports: ports.length === 0 ? null : [...ports],
  }
}

function settle(
  existing: readonly EndpointSlice[],
  unwanted: readonly EndpointSlice[],
  plans: readonly GroupPlan[],
  wanted: SliceOptions,
): SlicePlan {
  const changes = plans.flatMap((plan) => plan.changes)
  const create = plans.flatMap((plan) => plan.create)
  const update = changes.filter(({ isChanged, endpoints }) => isChanged && endpoints.length > 0)
  const remove = [...unwanted, ...changes.filter(({ endpoints }) => endpoints.length === 0).map(({ slice }) => slice)]
  if (wanted.needsOne && remove.length === existing.length && create.length === 0) {
    const placeholder = draftOf(wanted, [], [])
    const kept = remove.findIndex((slice) => isPlaceholder(slice, placeholder))
    if (kept >= 0) remove.splice(kept, 1)
    else create.push(placeholder)
  }
  const reused = create.splice(0, Math.min(create.length, remove.length))
  const replaced = remove.splice(0, reused.length)
  return {
    create,
    update: [
      ...update.map(({ slice, endpoints }) => rewrite(slice, { ports: slice.ports, endpoints }, wanted)),
      ...reused.map(({ ports, endpoints }, at) => rewrite(replaced[at] as EndpointSlice, { ports, endpoints }, wanted)),
    ],
    remove,
  }
}

function isPlaceholder({ endpoints, ports, metadata }: EndpointSlice, placeholder: SliceDraft): boolean {
  const isEmpty = (endpoints ?? []).length === 0 && (ports ?? []).length === 0
  return isEmpty && semanticEqual(metadata.labels, placeholder.metadata.labels)
}

function rewrite(
  slice: EndpointSlice,
  content: Pick<EndpointSlice, 'ports' | 'endpoints'>,
  { metadata: { labels = {}, ownerReferences = [] }, annotations }: SliceOptions,
): EndpointSlice {
  const metadata = { ...slice.metadata, labels, ownerReferences, annotations: { ...annotations } }
  return { ...slice, ...content, metadata }
}
