/** Summary of a node: addresses, versions, taints, and how much of it pods request. */
import type { Node, Pod } from '#apis/core/v1.ts'
import { addQuantities, parseQuantity, type Quantity, quantityNumber, quantityText } from '#meta/quantity.ts'

import { fields, pairs, type Section, table, type Value } from './section.ts'

export function nodeSections({ spec, status }: Node): readonly Section[] {
  const { nodeInfo } = status ?? {}
  return [
    fields('Node', [
      ['Scheduling', spec.unschedulable === true ? { text: 'Cordoned', tone: 'busy' } : undefined],
      ['Addresses', (status?.addresses ?? []).map(({ type, address }) => `${type} ${address}`)],
      ['Pod CIDRs', spec.podCIDRs ?? spec.podCIDR],
      ['Provider', spec.providerID],
      ['Kubelet', nodeInfo?.kubeletVersion],
      ['Container runtime', nodeInfo?.containerRuntimeVersion],
      ['Operating system', nodeInfo && `${nodeInfo.osImage}, ${nodeInfo.kernelVersion}, ${nodeInfo.architecture}`],
    ]),
    ...table(
      'Taints',
      ['Key', 'Value', 'Effect'],
      (spec.taints ?? []).map(({ key, value = '', effect }) => [key, value, effect]),
    ),
  ]
}

const SHOWN = ['cpu', 'memory', 'ephemeral-storage', 'pods']

/** Capacity, what pods can have of it, and what the pods on the node request. Undefined pods: not known yet. */
export function resourceTable({ status }: Node, pods: readonly Pod[] | undefined): readonly Section[] {
  const { capacity = {}, allocatable = {} } = status ?? {}
  const names = [...new Set([...SHOWN.filter((name) => name in capacity), ...Object.keys(capacity)])]
  const active = pods?.filter(({ status: { phase } }) => phase !== 'Succeeded' && phase !== 'Failed')
  return table(
    'Resources',
    ['Resource', 'Capacity', 'Allocatable', 'Requested'],
    names.map((name) => [
      name,
      capacity[name],
      allocatable[name],
      active && requested(name, active, allocatable[name]),
    ]),
  )
}

function requested(name: string, pods: readonly Pod[], allocatable = '0'): Value {
  if (name === 'pods') return share(parseQuantity(String(pods.length)), allocatable)
  const sum = pods
    .flatMap(({ spec }) => spec.containers.map(({ resources }) => resources?.requests?.[name]))
    .filter((text) => text !== undefined)
    .map((text) => parseQuantity(text))
    .reduce((total, one) => addQuantities(total, one), parseQuantity('0'))
  return share(sum, allocatable)
}

/** `1500m (75 %)`. */
function share(sum: Quantity, allocatable: string): Value {
  const whole = quantityNumber(parseQuantity(allocatable))
  const percent = whole === 0 ? 0 : Math.round((100 * quantityNumber(sum)) / whole)
  return { text: `${quantityText(sum)} (${percent} %)`, tone: percent >= 95 ? 'busy' : undefined }
}

export function namespaceSections(spec: unknown): readonly Section[] {
  const { finalizers } = (spec ?? {}) as { finalizers?: readonly string[] }
  return finalizers === undefined ? [] : [fields('Namespace', [['Finalizers', finalizers]])]
}

export function quotaTable(status: unknown): readonly Section[] {
  const { hard = {}, used = {} } = (status ?? {}) as Record<string, Record<string, string>>
  return table(
    'Quota',
    ['Resource', 'Used', 'Hard'],
    pairs(hard).map((pair) => {
      const at = pair.lastIndexOf('=')
      const name = pair.slice(0, at)
      return [name, used[name], hard[name]]
    }),
  )
}
