/** Sorts clusters by what needs attention, filters them, and writes their sizes as people do. */
import { parseQuantity, quantityNumber } from '#meta/quantity.ts'

import { type ManagedCluster, SOURCES, stateOf } from './clusters.ts'

/** Clusters with problems first, then those in work, each by name. */
export function byAttention(clusters: readonly ManagedCluster[]): readonly ManagedCluster[] {
  const ranked = clusters.map((cluster) => ({ cluster, rank: rankOf(cluster) }))
  ranked.sort((one, other) => one.rank - other.rank || collator.compare(nameOf(one.cluster), nameOf(other.cluster)))
  return ranked.map(({ cluster }) => cluster)
}

const collator = new Intl.Collator('en', { numeric: true })
const RANKS = { bad: 0, busy: 1, good: 2 } as const

function rankOf(cluster: ManagedCluster): number {
  return RANKS[stateOf(cluster).tone]
}

function nameOf({ spec }: ManagedCluster): string {
  return spec.displayName
}

/** Those that contain each word of the filter, and no word after a `-`. */
export function fittingClusters(clusters: readonly ManagedCluster[], filter: string): readonly ManagedCluster[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return clusters
  return clusters.filter((cluster) => {
    const text = textOf(cluster).toLowerCase()
    return words.every((word) =>
      word.length > 1 && word.startsWith('-') ? !text.includes(word.slice(1)) : text.includes(word),
    )
  })
}

function textOf(cluster: ManagedCluster): string {
  const { metadata, spec, status } = cluster
  const { text, causes } = stateOf(cluster)
  const shown = [spec.displayName, spec.description, metadata.name, SOURCES[spec.source], status?.version, text]
  return [...shown, ...causes].join('\n')
}

/** `16 cores`, `1.5 cores`. Empty for a text that is no quantity. */
export function coresText(quantity: string | undefined): string {
  const cores = numberOf(quantity)
  if (cores === undefined) return ''
  return cores === 1 ? '1 core' : `${rounded(cores)} cores`
}

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** `62 GiB`. Empty for a text that is no quantity. */
export function bytesText(quantity: string | number | undefined): string {
  const bytes = typeof quantity === 'number' ? quantity : numberOf(quantity)
  if (bytes === undefined) return ''
  if (bytes < 1024) return `${bytes} bytes`
  const power = Math.min(UNITS.length, Math.floor(Math.log2(bytes) / 10))
  return `${rounded(bytes / 1024 ** power)} ${UNITS[power - 1] ?? ''}`
}

function numberOf(text = ''): number | undefined {
  try {
    return quantityNumber(parseQuantity(text))
  } catch {
    return undefined
  }
}

/** Two digits are enough to compare sizes. */
function rounded(value: number): string {
  return value < 10 ? String(Math.round(value * 10) / 10) : Math.round(value).toLocaleString('en')
}
