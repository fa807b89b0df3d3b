/** Who the last files named, and this one does not. Pure. */
import type { ClusterFile, ClusterNode } from './cluster.ts'
import type { FullState } from './state.ts'

/**
 * Also of files that were never built to the end: whoever was named once may have something on it. A machine whose address inside of
 * the cluster is another is another machine, whatever it is called.
 */
export function nodesThatLeave({ nodes }: Pick<ClusterFile, 'nodes'>, state: FullState): ClusterNode[] {
  const { leaving = [], currentState, desiredState } = state
  const known = [...leaving, ...(currentState?.rkeConfig.nodes ?? []), ...(desiredState?.rkeConfig.nodes ?? [])]
  const keyOf = (node: ClusterNode): string => `${node.hostname_override} ${node.internal_address}`
  const staying = new Set(nodes.map(keyOf))
  return [...new Map(known.map((node) => [keyOf(node), node])).values()].filter((node) => !staying.has(keyOf(node)))
}
