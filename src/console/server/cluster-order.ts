/** Sorts clusters by what needs attention, and filters them. */
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
