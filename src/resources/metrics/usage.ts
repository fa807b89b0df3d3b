/**
 * NodeMetrics and PodMetrics for `kubectl top` and autoscalers. The server queries kubelets on request and caches their
 * answers. An unreachable node and its pods have no metrics.
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

/** The used part of a kubelet's `/stats/summary`. */
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
  /** The summary of a node's kubelet; undefined if it is unreachable. Never rejects. */
  readonly summaryOf: (node: string, signal: AbortSignal) => Promise<StatsSummary | undefined>
}

/** The measuring interval of kubelets. */
const WINDOW_MS = 15_000
const WINDOW = '15s'

/** The number of concurrent requests. */
const AT_ONCE = 64

/** Both kinds share one cache. */
export function defineUsage(source: UsageSource): readonly VirtualResource[] {
  const { objects } = source
  const ask = createFetchSummaries(source)
  return [
    defineObserved<NodeUsage>({
      kind: NodeUsages,
      schema: NODE_USAGE_SCHEMA,
      missing: 'nodemetricses',
      columns: columnsOf(({ usage }) => usage),
      async observe(where, signal) {
        const nodes = await lookUp(objects, Nodes, where)
        const summaries = await ask(namesOf(nodes), signal)
        return nodes.flatMap((node) => {
          const stats = summaries.get(node.metadata.name ?? '')?.node
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
        const summaries = await ask(new Set(pods.map(({ spec }) => spec?.nodeName ?? '')), signal)
        const stats = new Map(
          [...summaries.values()].flatMap(({ pods: measured = [] }) =>
            measured.map(({ podRef, containers = [] }) => [podRef.uid, containers] as const),
          ),
        )
        return pods.flatMap((pod) => podUsage(pod, stats.get(pod.metadata.uid ?? '') ?? []))
      },
    }),
  ]
}

type FetchSummaries = (nodes: ReadonlySet<string>, signal: AbortSignal) => Promise<ReadonlyMap<string, StatsSummary>>

/** Queries each node once per window, a few at a time. */
function createFetchSummaries({ clock, summaryOf }: UsageSource): FetchSummaries {
  const cached = new Map<string, { readonly atMs: number; readonly summary: StatsSummary }>()
  const isFresh = (node: string): boolean => clock.now() - (cached.get(node)?.atMs ?? -Infinity) < WINDOW_MS
  const askOne = async (node: string, signal: AbortSignal): Promise<void> => {
    const summary = await summaryOf(node, signal)
    if (summary === undefined) cached.delete(node)
    else cached.set(node, { atMs: clock.now(), summary })
  }
  return async (nodes, signal) => {
    for (const node of cached.keys()) if (!isFresh(node)) cached.delete(node)
    const waiting = [...nodes].filter((node) => !isFresh(node))
    while (waiting.length > 0) await Promise.all(waiting.splice(0, AT_ONCE).map((node) => askOne(node, signal)))
    return new Map(
      [...nodes].flatMap((node) => {
        const known = cached.get(node)
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

/** Omits a pod with an unmeasured container, because partial usage would mislead an autoscaler. */
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
