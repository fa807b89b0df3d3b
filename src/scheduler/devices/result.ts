/** Converts a found combination into the claim's allocation result. Pure except for share IDs. */
import type { Node, NodeSelector, NodeSelectorRequirement } from '#apis/core/v1.ts'
import type {
  AllocationResult,
  DeviceAllocationConfiguration,
  DeviceRequestAllocationResult,
  ResourceClaim,
} from '#apis/resource/v1.ts'
import { quantityText } from '#meta/quantity.ts'

import type { DeviceRequestAlternative, TakenDevice } from './device-requests.ts'

/** `newShare` returns a unique share ID. */
export function allocationOf(
  claim: ResourceClaim,
  taken: readonly TakenDevice[],
  node: Node,
  newShare: () => string,
): AllocationResult {
  const results = taken.map((one) => resultOf(one, newShare))
  const config = configOf(claim, taken)
  const nodeSelector = selectorOf(taken, node)
  return {
    devices: { ...(results.length > 0 && { results }), ...(config.length > 0 && { config }) },
    ...(nodeSelector !== undefined && { nodeSelector }),
  }
}

function resultOf({ wanted, offered, consumed }: TakenDevice, newShare: () => string): DeviceRequestAllocationResult {
  const { device, slice } = offered
  const { tolerations } = wanted
  const { bindingConditions = [], bindingFailureConditions = [] } = device
  const consumedCapacity = Object.fromEntries(Array.from(consumed ?? [], ([name, one]) => [name, quantityText(one)]))
  return {
    request: wanted.name,
    driver: slice.spec.driver,
    pool: slice.spec.pool.name,
    device: device.name,
    ...(wanted.isAdmin && { adminAccess: true }),
    ...(tolerations.length > 0 && { tolerations: [...tolerations] }),
    ...(bindingConditions.length > 0 && { bindingConditions }),
    ...(bindingFailureConditions.length > 0 && { bindingFailureConditions }),
    ...(consumed !== undefined && { shareID: newShare() }),
    ...(consumed !== undefined && consumed.size > 0 && { consumedCapacity }),
  }
}

/** The configuration of each used class once, then that of the claim for the chosen requests and alternatives. */
function configOf({ spec }: ResourceClaim, taken: readonly TakenDevice[]): DeviceAllocationConfiguration[] {
  const { requests, config = [] } = spec.devices
  const met = (requests ?? []).flatMap(({ name }) => taken.find(({ wanted }) => wanted.request === name)?.wanted ?? [])
  const ofClass = Map.groupBy(met, ({ deviceClass }) => deviceClass.metadata.name ?? '')
  return [
    ...Array.from(ofClass.values(), (wanted) => {
      const [{ deviceClass }] = wanted as [DeviceRequestAlternative]
      const names = wanted.map(({ name }) => name)
      return (deviceClass.spec.config ?? []).map((one) => ({ source: 'FromClass', requests: names, ...one }))
    }).flat(),
    ...config.flatMap(({ requests: only = [], ...one }) => {
      if (only.length === 0) return [{ source: 'FromClaim', ...one }]
      const concerned = met.filter(({ request, name }) => only.includes(request) || only.includes(name))
      return concerned.map(() => ({ source: 'FromClaim', requests: only, ...one }))
    }),
  ]
}

/** The nodes where all devices are usable; undefined: all nodes. */
function selectorOf(taken: readonly TakenDevice[], { metadata: { name = '' } }: Node): NodeSelector | undefined {
  const matchFields: NodeSelectorRequirement[] = []
  const matchExpressions: NodeSelectorRequirement[] = []
  for (const { offered } of taken) {
    const { device, slice } = offered
    const { nodeName, nodeSelector } = slice.spec.perDeviceNodeSelection === true ? device : slice.spec
    if (nodeName !== undefined || device.bindsToNode === true)
      return { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }] }
    const [term] = nodeSelector?.nodeSelectorTerms ?? []
    addNew(matchFields, term?.matchFields)
    addNew(matchExpressions, term?.matchExpressions)
  }
  if (matchFields.length === 0 && matchExpressions.length === 0) return undefined
  return {
    nodeSelectorTerms: [
      { ...(matchExpressions.length > 0 && { matchExpressions }), ...(matchFields.length > 0 && { matchFields }) },
    ],
  }
}

function addNew(all: NodeSelectorRequirement[], more: readonly NodeSelectorRequirement[] = []): void {
  for (const one of more) {
    const isKnown = all.some(
      ({ key, operator, values = [] }) =>
        key === one.key &&
        operator === one.operator &&
        new Set(values).symmetricDifference(new Set(one.values)).size === 0,
    )
    if (!isKnown) all.push(one)
  }
}
