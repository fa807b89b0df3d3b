/** Formats the tables of `kubectl top`. Pure. */
import { compareText } from '#lib/go/text.ts'
import { addQuantities, parseQuantity, type Quantity, quantityMilliValue, quantityValue } from '#meta/quantity.ts'

import { TabWriter } from '../print/tabs.ts'

export type Usage = Readonly<Record<string, string>>

export interface NodeMetrics {
  readonly metadata: { readonly name?: string }
  readonly usage?: Usage
}

export interface PodMetrics {
  readonly metadata: { readonly name?: string; readonly namespace?: string }
  readonly containers?: readonly { readonly name: string; readonly usage?: Usage }[]
}

export interface UsageTableOptions {
  readonly noHeaders: boolean
  /** `cpu`, `memory`, or empty to sort by name. */
  readonly sortBy: string
  readonly showSwap: boolean
}

const UNKNOWN = '<unknown>'

function measured(showSwap: boolean): readonly string[] {
  return showSwap ? ['cpu', 'memory', 'swap'] : ['cpu', 'memory']
}

function amount(usage: Usage, resource: string): Quantity {
  return parseQuantity(usage[resource] ?? '0')
}

function cell(resource: string, quantity: Quantity): string {
  if (resource === 'cpu') return `${quantityMilliValue(quantity)}m`
  return `${Math.trunc(quantityValue(quantity) / (1024 * 1024))}Mi`
}

function bySize(sortBy: string): (one: Usage, other: Usage) => number {
  const sizeOf = (usage: Usage): number => {
    const quantity = amount(usage, sortBy)
    return sortBy === 'cpu' ? quantityMilliValue(quantity) : quantityValue(quantity)
  }
  return (one, other) => sizeOf(other) - sizeOf(one)
}

function line(cells: readonly string[]): string {
  return `${cells.map((text) => `${text}\t`).join('')}\n`
}

/** `available` contains all selected nodes; those without metrics come last. */
export function nodeTable(
  metrics: readonly NodeMetrics[],
  available: ReadonlyMap<string, Usage>,
  { noHeaders, sortBy, showSwap }: UsageTableOptions,
): string {
  const tabs = new TabWriter()
  const resources = measured(showSwap)
  const headers = ['NAME', 'CPU(cores)', 'CPU(%)', 'MEMORY(bytes)', 'MEMORY(%)']
  if (!noHeaders) tabs.write(line([...headers, ...(showSwap ? ['SWAP(bytes)', 'SWAP(%)'] : [])]))
  const left = new Set(available.keys())
  const named = (one: NodeMetrics): string => one.metadata.name ?? ''
  const order = bySize(sortBy)
  const sorted = [...metrics].sort((one, other) =>
    sortBy === '' ? compareText(named(one), named(other)) : order(one.usage ?? {}, other.usage ?? {}),
  )
  for (const one of sorted) {
    left.delete(named(one))
    const total = available.get(named(one)) ?? {}
    const cells = resources.flatMap((resource) => nodeCells(resource, one.usage ?? {}, total))
    tabs.write(line([named(one), ...cells]))
  }
  for (const name of left) tabs.write(line([name, ...resources.flatMap(() => [UNKNOWN, UNKNOWN])]))
  return tabs.flush()
}

function nodeCells(resource: string, usage: Usage, total: Usage): string[] {
  if (resource === 'swap' && total['swap'] === undefined) return [UNKNOWN, UNKNOWN]
  const used = amount(usage, resource)
  const text = cell(resource, used)
  if (total[resource] === undefined) return [text]
  const all = quantityMilliValue(amount(total, resource))
  return [text, `${all === 0 ? 0 : Math.trunc((quantityMilliValue(used) / all) * 100)}%`]
}

export interface PodTableOptions extends UsageTableOptions {
  readonly withContainers: boolean
  readonly withNamespace: boolean
  readonly withSum: boolean
}

export function podTable(metrics: readonly PodMetrics[], options: PodTableOptions): string {
  const { noHeaders, sortBy, showSwap, withContainers, withNamespace, withSum } = options
  const tabs = new TabWriter()
  const resources = measured(showSwap)
  const columns = ['NAME', 'CPU(cores)', 'MEMORY(bytes)', ...(showSwap ? ['SWAP(bytes)'] : [])]
  const heads = [...(withNamespace ? ['NAMESPACE'] : []), ...(withContainers ? ['POD'] : []), ...columns]
  if (!noHeaders) tabs.write(line(heads))
  const cells = (usage: Usage): string[] => resources.map((resource) => cell(resource, amount(usage, resource)))
  for (const pod of sortedPods(metrics, { sortBy, withNamespace }, resources)) {
    const { name = '', namespace = '' } = pod.metadata
    const namespaceCell = withNamespace ? [namespace] : []
    if (!withContainers) tabs.write(line([...namespaceCell, name, ...cells(totalOf(pod, resources))]))
    else
      for (const one of sortedContainers(pod, sortBy))
        tabs.write(line([...namespaceCell, name, one.name, ...cells(one.usage ?? {})]))
  }
  if (withSum) {
    // Without headers upstream pads no columns before the name.
    const width = noHeaders ? columns.length : heads.length
    const total = totalOf({ metadata: {}, containers: metrics.flatMap(({ containers = [] }) => containers) }, resources)
    tabs.write(line([...Array<string>(width - 2).fill(''), '________', '________']))
    tabs.write(line([...Array<string>(width - 3).fill(''), '', ...cells(total)]))
  }
  return tabs.flush()
}

function totalOf({ containers = [] }: PodMetrics, resources: readonly string[]): Usage {
  const sums = resources.map((resource) => {
    const sum = containers.reduce(
      (total, { usage = {} }) => addQuantities(total, amount(usage, resource)),
      parseQuantity('0'),
    )
    return [resource, resource === 'cpu' ? `${quantityMilliValue(sum)}m` : String(quantityValue(sum))]
  })
  return Object.fromEntries(sums) as Usage
}

function sortedPods(
  metrics: readonly PodMetrics[],
  { sortBy, withNamespace }: { readonly sortBy: string; readonly withNamespace: boolean },
  resources: readonly string[],
): PodMetrics[] {
  const order = bySize(sortBy)
  const byName = (one: PodMetrics, other: PodMetrics): number =>
    (withNamespace ? compareText(one.metadata.namespace ?? '', other.metadata.namespace ?? '') : 0) ||
    compareText(one.metadata.name ?? '', other.metadata.name ?? '')
  if (sortBy === '') return [...metrics].sort(byName)
  return [...metrics].sort((one, other) => order(totalOf(one, resources), totalOf(other, resources)))
}

function sortedContainers({ containers = [] }: PodMetrics, sortBy: string): NonNullable<PodMetrics['containers']> {
  const order = bySize(sortBy)
  return [...containers].sort((one, other) =>
    sortBy === '' ? compareText(one.name, other.name) : order(one.usage ?? {}, other.usage ?? {}),
  )
}
