/** Validates node selector terms by label and field, in pods and volumes. */
import type { NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm } from '#apis/core/v1.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, labelValue } from '#meta/validation/names.ts'
import { validateLabelName } from '#meta/validation/rules.ts'

/** `invalidValues`: invalid label values are accepted, because the old object has them. */
export function validateNodeSelector(path: FieldPath, selector: NodeSelector, invalidValues = false): FieldError[] {
  const field = path.child('nodeSelectorTerms')
  const terms = selector.nodeSelectorTerms ?? []
  if (terms.length === 0) return [field.required('must have at least one node selector term')]
  return field.each(terms, (path, term) => validateNodeSelectorTerm(path, term, invalidValues))
}

export function validateNodeSelectorTerm(path: FieldPath, term: NodeSelectorTerm, invalidValues = false): FieldError[] {
  const expressions = path.child('matchExpressions')
  const fields = path.child('matchFields')
  return [
    ...expressions.each(term.matchExpressions, (path, one) => validateRequirement(path, one, invalidValues)),
    ...fields.each(term.matchFields, validateFieldRequirement),
  ]
}

/** Preferences may have any value: for a single node it is harmless. */
export function validatePreferredTerms(path: FieldPath, terms: readonly PreferredSchedulingTerm[] = []): FieldError[] {
  return path.each(terms, (path, { weight, preference }) => [
    ...validateWeight(path.child('weight'), weight),
    ...validateNodeSelectorTerm(path.child('preference'), preference, true),
  ])
}

export function validateWeight(path: FieldPath, weight: number): FieldError[] {
  return weight > 0 && weight <= 100 ? [] : [path.invalid(weight, 'must be in the range 1-100')]
}

function validateRequirement(path: FieldPath, one: NodeSelectorRequirement, invalidValues: boolean): FieldError[] {
  const { key, operator, values = [] } = one
  const field = path.child('values')
  return collectErrors(
    validateOperator(path, operator, values.length),
    validateLabelName(path.child('key'), key),
    !invalidValues && field.each(values, (path, value) => path.check(value, labelValue, 'format=k8s-label-value')),
  )
}

function validateOperator(path: FieldPath, operator: string, count: number): FieldError[] {
  const values = path.child('values')
  switch (operator) {
    case 'In':
    case 'NotIn':
      return count > 0 ? [] : [values.required("must be specified when `operator` is 'In' or 'NotIn'")]
    case 'Exists':
    case 'DoesNotExist':
      if (count === 0) return []
      return [values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
    case 'Gt':
    case 'Lt':
      if (count === 1) return []
      return [values.required("must be specified single value when `operator` is 'Lt' or 'Gt'")]
    default:
      return [unknownOperator(path, operator)]
  }
}

function unknownOperator(path: FieldPath, operator: string): FieldError {
  return path.child('operator').invalid(asJson(operator), 'not a valid selector operator')
}

function validateFieldRequirement(
  path: FieldPath,
  { key, operator, values = [] }: NodeSelectorRequirement,
): FieldError[] {
  const field = path.child('values')
  const errors: FieldError[] = []
  if (operator !== 'In' && operator !== 'NotIn') errors.push(unknownOperator(path, operator))
  else if (values.length !== 1) {
    errors.push(field.required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
  }
  if (key !== 'metadata.name') {
    return [...errors, path.child('key').invalid(key, 'not a valid field selector key')]
  }
  return [...errors, ...field.each(values, (path, value) => path.check(value, dns1123Subdomain))]
}
