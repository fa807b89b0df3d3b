/** Whether a pod may be on a node, by its affinity and the node's taints. Pure. */
import type { Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration } from '#apis/core/v1.ts'
import { type LabelOperator, type Labels, matchesLabels, meets, selectorFromLabels } from '#meta/labels.ts'

const OPERATORS: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
  Gt: 'gt',
  Lt: 'lt',
}

/** By its `nodeSelector` and what its affinity requires. */
export function fitsAffinity({ nodeSelector, affinity }: PodSpec, node: Node): boolean {
  if (nodeSelector !== undefined && !matchesLabels(selectorFromLabels(nodeSelector), node.metadata.labels)) return false
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return terms === undefined || terms === null || terms.some((term) => fitsNodeTerm(term, node))
}

/** A term that says nothing fits nothing. */
export function fitsNodeTerm(
  { matchExpressions = [], matchFields = [] }: NodeSelectorTerm,
  { metadata }: Pick<Node, 'metadata'>,
): boolean {
  if (matchExpressions.length === 0 && matchFields.length === 0) return false
  const fields = { 'metadata.name': metadata.name ?? '' }
  return fits(matchExpressions, metadata.labels) && fits(matchFields, fields)
}

function fits(requirements: readonly NodeSelectorRequirement[], labels: Labels): boolean {
  return requirements.every(({ key, operator, values = [] }) => {
    const known = OPERATORS[operator]
    return known !== undefined && meets({ key, operator: known, values }, labels)
  })
}

/** Whether a taint with one of these effects keeps it away. */
export function isRepelled(
  taints: readonly Taint[] = [],
  tolerations: readonly Toleration[] = [],
  effects: readonly string[],
): boolean {
  return taints.some(
    (taint) => effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  )
}

export function tolerates({ key = '', operator = '', value = '', effect = '' }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false
  if (key !== '' && key !== taint.key) return false
  if (operator === 'Exists') return true
  return (operator === '' || operator === 'Equal') && value === (taint.value ?? '')
}
