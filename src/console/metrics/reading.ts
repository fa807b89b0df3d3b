/** Reads answers of the metrics API: how much CPU and memory nodes, pods and containers use. */
import { sumOf, type Use, useOf } from './amount.ts'

/** A node of the cluster, a pod of a workload or a container of a pod. */
export interface Part {
  readonly name: string
  readonly use: Use
}

export interface Reading {
  readonly total: Use
  /** Empty for one node. */
  readonly parts: readonly Part[]
}

interface Measured {
  readonly metadata?: { readonly name?: unknown }
  readonly usage?: unknown
  readonly containers?: unknown
}

/** More objects than the page can show. */
const MAX_PARTS = 10_000

/** Undefined if nothing is measured. Takes NodeMetrics, PodMetrics and lists of them. */
export function readingOf(body: unknown): Reading | undefined {
  if (typeof body !== 'object' || body === null) return undefined
  const { items } = body as { readonly items?: unknown }
  if (Array.isArray(items)) return ofParts(items.slice(0, MAX_PARTS).flatMap(objectPart))
  const { usage, containers } = body as Measured
  if (Array.isArray(containers)) return ofParts(containerParts(containers))
  const total = useOf(usage)
  return total && { total, parts: [] }
}

function ofParts(parts: readonly Part[]): Reading | undefined {
  return parts.length === 0 ? undefined : { total: sumOf(parts.map(({ use }) => use)), parts }
}

function objectPart(item: Measured | null): readonly Part[] {
  const name = item?.metadata?.name
  const reading = item === null ? undefined : readingOf({ usage: item.usage, containers: item.containers })
  return typeof name === 'string' && reading !== undefined ? [{ name, use: reading.total }] : []
}

function containerParts(containers: readonly unknown[]): readonly Part[] {
  return containers.slice(0, MAX_PARTS).flatMap((container) => {
    const { name, usage } = (container ?? {}) as { readonly name?: unknown; readonly usage?: unknown }
    const use = useOf(usage)
    return typeof name === 'string' && use !== undefined ? [{ name, use }] : []
  })
}
