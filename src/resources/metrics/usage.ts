/**
 * NodeMetrics and PodMetrics: what `kubectl top` shows and autoscalers read. Kubelets measure, and are asked when somebody
 * asks; what they said is good for a while. A node that cannot be asked has no metrics, and neither have its pods.
 */
import { Nodes, Pods } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { defineObserved, type Observing } from '#apiserver/handlers/observed.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import type { Column, ObjectReader } from '#apiserver/registry/resource.ts'
import type { VirtualResource } from '#apiserver/registry/virtual.ts'
import type { Clock } from '#lib/clock.ts'
import type { KubeObject } from '#meta/object.ts'
import { addQuantities, canonicalQuantity, parseQuantity, quantityOf, quantityText } from '#meta/quantity.ts'
import {
  NODE_USAGE_SCHEMA,
  type NodeUsage,
  NodeUsages,
  POD_USAGE_SCHEMA,
  type PodUsage,
  PodUsages,
  type Usage,
} from '#model/usage.ts'

interface Stats {
  readonly cpu?: { readonly time?: string; readonly usageNanoCores?: number }
  readonly memory?: { readonly workingSetBytes?: number }
}

interface ContainerStats extends Stats {
  readonly name: string
}

/** The part of a kubelet's `/stats/summary` that counts here. */
export interface StatsSummary {
  readonly node: Stats
  readonly pods?: readonly {
    readonly podRef: { readonly uid: string }
    readonly containers?: readonly ContainerStats[]
  }[]
}

export interface UsageSource {
  readonly objects: ObjectReader
  readonly clock: Clock
  /** What a node's kubelet says; undefined when it cannot be asked. Never rejects. */
  readonly summaryOf: (node: string, signal: AbortSignal) => Promise<StatsSummary | undefined>
}

/** Kubelets measure no more often. */
const WINDOW_MS = 15_000
const WINDOW = '15s'

/** Nodes that are asked at the same time. */
const AT_ONCE = 64

/** The two kinds, over one memory of what kubelets said. */
export function defineUsage(source: UsageSource): readonly VirtualResource[] {
  const { objects } = source
  const ask = askOf(source)
  return [
    defineObserved<NodeUsage>({
      kind: NodeUsages,
      schema: NODE_USAGE_SCHEMA,
      missing: 'nodemetricses',
      columns: columnsOf(({ usage }) => usage),
      async observe(where, signal) {
        const nodes = await lookUp(objects, Nodes, where)
        const said = await ask(namesOf(nodes), signal)
        return nodes.flatMap((node) => {
          const stats = said.get(node.metadata.name ?? '')?.node
          return stats?.cpu === undefined ? [] : [{ ...headOf(node, stats), usage: usageOf(stats) }]
        })
      },
    }),
    defineObserved<PodUsage>({
      kind: PodUsages,
      schema: POD_USAGE_SCHEMA,
      missing: 'podmetricses',
      columns: columnsOf(({ containers }) => totalOf((containers ?? []).map(({ usage = {} }) => usage))),
      async observe(where, signal) {
        const pods = (await lookUp(objects, Pods, where)).filter(({ status }) => status?.phase === 'Running')
        const said = await ask(new Set(pods.map(({ spec }) => spec?.nodeName ?? '')), signal)
        const stats = new Map(
          [...said.values()].flatMap(({ pods: measured = [] }) =>
            measured.map(({ podRef, containers = [] }) => [podRef.uid, containers] as const),
          ),
        )
        return pods.flatMap((pod) => podUsage(pod, stats.get(pod.metadata.uid ?? '') ?? []))
      },
    }),
  ]
}

type Ask = (nodes: ReadonlySet<string>, signal: AbortSignal) => Promise<ReadonlyMap<string, StatsSummary>>

/** Asks each node once in a window, a few at a time. */
function askOf({ clock, summaryOf }: UsageSource): Ask {
  const said = new Map<string, { readonly atMs: number; readonly summary: StatsSummary }>()
  const isFresh = (node: string): boolean => clock.now() - (said.get(node)?.atMs ?? -Infinity) < WINDOW_MS
  const askOne = async (node: string, signal: AbortSignal): Promise<void> => {
    const summary = await summaryOf(node, signal)
    if (summary === undefined) said.delete(node)
    else said.set(node, { atMs: clock.now(), summary })
  }
  return async (nodes, signal) => {
    for (const node of said.keys()) if (!isFresh(node)) said.delete(node)
    const waiting = [...nodes].filter((node) => !isFresh(node))
    while (waiting.length > 0) await Promise.all(waiting.splice(0, AT_ONCE).map((node) => askOne(node, signal)))
    return new Map(
      [...nodes].flatMap((node) => {
        const known = said.get(node)
        return known === undefined ? [] : [[node, known.summary] as const]
      }),
    )
  }
}

async function lookUp<T extends KubeObject>(
  objects: ObjectReader,
  kind: Kind<T>,
  { namespace, name }: Observing,
): Promise<readonly T[]> {
  if (name === undefined) return objects.list(kind, namespace)
  const found = await objects.get(kind, namespace, name)
  return found === undefined ? [] : [found]
}

function namesOf(objects: readonly KubeObject[]): ReadonlySet<string> {
  return new Set(objects.map(({ metadata }) => metadata.name ?? ''))
}

/** None of a pod of which a container was not measured yet: half of what it uses would mislead an autoscaler. */
function podUsage(pod: KubeObject, containers: readonly ContainerStats[]): readonly PodUsage[] {
  const [first] = containers
  if (first === undefined || containers.some(({ cpu, memory }) => cpu === undefined || memory === undefined)) return []
  return [
    { ...headOf(pod, first), containers: containers.map((stats) => ({ name: stats.name, usage: usageOf(stats) })) },
  ]
}

function headOf({ metadata }: KubeObject, { cpu }: Stats): Pick<NodeUsage, 'metadata' | 'timestamp' | 'window'> {
  const { name, namespace, labels } = metadata
  const timestamp = cpu?.time ?? null
  return {
    metadata: {
      name: name ?? '',
      ...(namespace !== undefined && { namespace }),
      ...(timestamp !== null && { creationTimestamp: timestamp }),
      ...(labels !== undefined && { labels }),
    },
    timestamp,
    window: WINDOW,
  }
}

function usageOf({ cpu, memory }: Stats): Usage {
  return {
    cpu: canonicalQuantity(`${cpu?.usageNanoCores ?? 0}n`),
    memory: quantityText(quantityOf(memory?.workingSetBytes ?? 0, 'BinarySI')),
  }
}

function totalOf(usages: readonly Usage[]): Usage {
  const sum = (resource: string): string =>
    quantityText(usages.map((usage) => parseQuantity(usage[resource] ?? '0')).reduce(addQuantities, quantityOf(0)))
  return { cpu: sum('cpu'), memory: sum('memory') }
}

function columnsOf<T extends NodeUsage | PodUsage>(usageOfOne: (object: T) => Usage): readonly Column<T>[] {
  const resource = (name: string): Column<T> => ({ name, value: (object) => usageOfOne(object)[name] ?? '' })
  return [nameColumn, resource('cpu'), resource('memory'), { name: 'Window', value: ({ window }) => window }]
}
