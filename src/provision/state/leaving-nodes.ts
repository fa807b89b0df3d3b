/** Finds nodes that an earlier cluster.yml had and the current one lacks. Pure. */
import type { ClusterFile, ClusterNode } from '../cluster.ts'
import type { FullState } from './state.ts'

/**
 * Includes files that were never built completely, because their machines may have parts of the cluster. A machine with
 * another internal address is another machine, even with the same name.
 */
export function nodesThatLeave({ nodes }: Pick<ClusterFile, 'nodes'>, state: FullState): ClusterNode[] {
  const { leaving = [], currentState, desiredState } = state
  const known = [...leaving, ...(currentState?.rkeConfig.nodes ?? []), ...(desiredState?.rkeConfig.nodes ?? [])]
  const keyOf = (node: ClusterNode): string => `${node.hostname_override} ${node.internal_address}`
  const staying = new Set(nodes.map(keyOf))
  return [...new Map(known.map((node) => [keyOf(node), node])).values()].filter((node) => !staying.has(keyOf(node)))
}
