/** Selects the nodes to which load balancers send traffic. Pure. */
import type { Node } from '#apis/core/v1.ts'
import { isBeingDeleted } from '#meta/object.ts'

const EXCLUDED = 'node.kubernetes.io/exclude-from-external-load-balancers'
const TO_BE_DELETED = 'ToBeDeletedByClusterAutoscaler'
const TRUE = new Set(['1', 't', 'T', 'true', 'TRUE', 'True'])
const FALSE = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False'])

/** Nodes that are not ready stay: the load balancer checks their health itself. */
export function isBalanced(node: Node): boolean {
  return !isBeingDeleted(node) && !isExcluded(node) && !isGoing(node)
}

/** An invalid label value excludes the node, as upstream. */
function isExcluded({ metadata: { labels = {} } }: Node): boolean {
  const value = labels[EXCLUDED]
  return value !== undefined && (TRUE.has(value) || !FALSE.has(value))
}

const isGoing = ({ spec }: Node): boolean => spec.taints?.some(({ key }) => key === TO_BE_DELETED) ?? false

/** Whether a node change affects load balancers. */
export function changesBalance(node: Node, old: Node): boolean {
  return describe(node) !== describe(old)
}

function describe(node: Node): string {
  const { spec, status } = node
  return JSON.stringify([isBalanced(node), spec.providerID, spec.podCIDRs, status?.addresses])
}
