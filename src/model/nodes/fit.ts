/** Checks whether a pod fits a node, by affinity and taints. Pure. */
import type { Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration } from '#apis/core/v1.ts'
import { type LabelOperator, type Labels, matchesLabels, meets, selectorFromLabels } from '#meta/labels.ts'
import { decimalInteger } from '#meta/validation/names.ts'

const OPERATORS: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
  Gt: 'gt',
  Lt: 'lt',
}

/** By `nodeSelector` and required node affinity. */
export function fitsAffinity({ nodeSelector, affinity }: PodSpec, node: Node): boolean {
  if (nodeSelector !== undefined && !matchesLabels(selectorFromLabels(nodeSelector), node.metadata.labels)) return false
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return terms === undefined || terms === null || terms.some((term) => fitsNodeTerm(term, node))
}

/** An empty term matches nothing. */
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

/** True if a taint with one of these effects repels it. */
export function isRepelled(
  taints: readonly Taint[] = [],
  tolerations: readonly Toleration[] = [],
  effects: readonly string[],
  isTolerated: typeof tolerates = tolerates,
): boolean {
  return taints.some(
    (taint) => effects.includes(taint.effect) && !tolerations.some((toleration) => isTolerated(toleration, taint)),
  )
}

/** The operators `Lt` and `Gt` tolerate nothing: see toleratesNumbers. */
export function tolerates({ key = '', operator = '', value = '', effect = '' }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false
  if (key !== '' && key !== taint.key) return false
  if (operator === 'Exists') return true
  return (operator === '' || operator === 'Equal') && value === (taint.value ?? '')
}

/** Selects one of the two by the caller's gates. */
export function tolerationRule(isEnabled: (gate: string) => boolean): typeof tolerates {
  return isEnabled('TaintTolerationComparisonOperators') ? toleratesNumbers : tolerates
}

/** With `Lt` and `Gt`, which compare the values of taint and toleration (gate TaintTolerationComparisonOperators). */
export function toleratesNumbers(toleration: Toleration, taint: Taint): boolean {
  const { operator, value: bound = '' } = toleration
  if (operator !== 'Lt' && operator !== 'Gt') return tolerates(toleration, taint)
  const { value = '' } = taint
  if (!isInt64(bound) || !isInt64(value)) return false
  const isMet = operator === 'Lt' ? BigInt(value) < BigInt(bound) : BigInt(value) > BigInt(bound)
  return isMet && tolerates({ ...toleration, operator: 'Exists' }, taint)
}

function isInt64(text: string): boolean {
  return decimalInteger(text).length === 0 && BigInt.asIntN(64, BigInt(text)) === BigInt(text)
}
