/** Selectors of nodes by label and by field, as pods and volumes have them: their rules. */
import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm } from '#apis/core/v1.ts'
import { asJson, child, type FieldError, forbidden, index, invalid, required } from '#meta/validation/field-error.ts'
import { dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { complaining, validateLabelName } from '#meta/validation/rules.ts'

/** `invalidValues`: values that are no label values are let pass, because an old object has them. */
export function validateNodeSelector(path: string, selector: NodeSelector, invalidValues = false): FieldError[] {
  const field = child(path, 'nodeSelectorTerms')
  const terms = selector.nodeSelectorTerms ?? []
  if (terms.length === 0) return [required(field, 'must have at least one node selector term')]
  return terms.flatMap((term, at) => validateNodeSelectorTerm(index(field, at), term, invalidValues))
}

export function validateNodeSelectorTerm(path: string, term: NodeSelectorTerm, invalidValues = false): FieldError[] {
  const expressions = child(path, 'matchExpressions')
  const fields = child(path, 'matchFields')
  return [
    ...(term.matchExpressions ?? []).flatMap((one, at) =>
      validateRequirement(index(expressions, at), one, invalidValues),
    ),
    ...(term.matchFields ?? []).flatMap((one, at) => validateFieldRequirement(index(fields, at), one)),
  ]
}

/** Wishes may hold any value: with a single node they do no harm. */
export function validatePreferredTerms(field: string, terms: readonly PreferredSchedulingTerm[] = []): FieldError[] {
  return terms.flatMap(({ weight, preference }, at) => [
    ...validateWeight(child(index(field, at), 'weight'), weight),
    ...validateNodeSelectorTerm(child(index(field, at), 'preference'), preference, true),
  ])
}

export function validateWeight(field: string, weight: number): FieldError[] {
  return weight > 0 && weight <= 100 ? [] : [invalid(field, weight, 'must be in the range 1-100')]
}

function validateRequirement(path: string, one: NodeSelectorRequirement, invalidValues: boolean): FieldError[] {
  const { key, operator, values = [] } = one
  const field = child(path, 'values')
  return [
    ...validateOperator(path, operator, values.length),
    ...validateLabelName(child(path, 'key'), key),
    ...(invalidValues
      ? []
      : values.flatMap((value, at) =>
          complaining(index(field, at), value, labelValue(value), 'format=k8s-label-value'),
        )),
  ]
}

function validateOperator(path: string, operator: string, count: number): FieldError[] {
  const values = child(path, 'values')
  switch (operator) {
    case 'In':
    case 'NotIn':
      return count > 0 ? [] : [required(values, "must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      if (count === 0) return []
      return [forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    case 'Gt':
    case 'Lt':
      if (count === 1) return []
      return [required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'")]
    default:
      return [unknownOperator(path, operator)]
  }
}

function unknownOperator(path: string, operator: string): FieldError {
  return invalid(child(path, 'operator'), asJson(operator), 'not a valid selector operator')
}

function validateFieldRequirement(path: string, { key, operator, values = [] }: NodeSelectorRequirement): FieldError[] {
  const field = child(path, 'values')
  const errors: FieldError[] = []
  if (operator !== 'In' && operator !== 'NotIn') errors.push(unknownOperator(path, operator))
  else if (values.length !== 1) {
    errors.push(required(field, "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
  }
  if (key !== 'metadata.name') {
    return [...errors, invalid(child(path, 'key'), key, 'not a valid field selector key')]
  }
  return [...errors, ...values.flatMap((value, at) => complaining(index(field, at), value, dns1123Subdomain(value)))]
}
