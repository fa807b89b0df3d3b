/** Converts and validates metav1.LabelSelector, the structured form of a label selector. */
import { compareText, goQuote } from '#lib/go/text.ts'

import {
  createRequirement,
  createSelector,
  everything,
  type LabelOperator,
  type LabelRequirement,
  nothing,
  parseSelector,
  type Selector,
  selectorText,
} from './labels.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from './validation/field-path.ts'
import { labelValue } from './validation/names.ts'
import { validateLabelName, validateLabels } from './validation/rules.ts'

export interface LabelSelectorRequirement {
  key: string
  operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  values?: string[]
}

export interface LabelSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: LabelSelectorRequirement[]
}

const textOperators = new Map<string, LabelOperator>([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
])

const kubeOperators = new Map<LabelOperator, LabelSelectorRequirement['operator']>([
  ['in', 'In'],
  ['notin', 'NotIn'],
  ['exists', 'Exists'],
  ['!', 'DoesNotExist'],
])

/** An absent selector selects nothing, an empty one everything. Throws for an invalid one. */
export function asSelector(selector: LabelSelector | null | undefined): Selector {
  if (selector === null || selector === undefined) return nothing
  const requirements = [
    ...Object.entries(selector.matchLabels ?? {}).map(([key, value]) => createRequirement(key, '=', [value])),
    ...(selector.matchExpressions ?? []).map(requirementOf),
  ]
  return requirements.length === 0 ? everything : createSelector(requirements)
}

function requirementOf({ key, operator, values = [] }: LabelSelectorRequirement): LabelRequirement {
  const known = textOperators.get(operator)
  if (known === undefined) throw new Error(`${goQuote(operator)} is not a valid label selector operator`)
  return createRequirement(key, known, values)
}

/** The text for people: `app=web,t in (x,y)`, `<none>` if empty or absent, `<error>` if invalid. */
export function labelSelectorText(selector: LabelSelector | null | undefined): string {
  try {
    return selectorText(asSelector(selector)) || '<none>'
  } catch {
    return '<error>'
  }
}

/** Go's form of the struct. */
export function goSelectorText(selector: LabelSelector | undefined): string {
  if (selector === undefined) return 'nil'
  const { matchLabels = {}, matchExpressions = [] } = selector
  const labels = Object.keys(matchLabels)
    .sort()
    .map((name) => `${name}: ${matchLabels[name]},`)
  const expressions = matchExpressions.map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  )
  return `&LabelSelector{MatchLabels:map[string]string{${labels.join('')}},MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},}`
}

/**
 * Parses the text form into the structured one. Throws for invalid text and for `>` and `<`, which have no structured
 * form.
 */
export function parseLabelSelector(text: string): LabelSelector {
  const matchLabels = new Map<string, string>()
  const matchExpressions: LabelSelectorRequirement[] = []
  for (const { key, operator, values } of parsed(text)) {
    const known = kubeOperators.get(operator)
    if (operator === '=' || operator === '==') matchLabels.set(key, values[0] ?? '')
    else if (known === undefined) {
      const isOrder = operator === 'gt' || operator === 'lt'
      const complaint = isOrder ? "isn't supported in label selectors" : 'is not a valid label selector operator'
      throw new Error(`${goQuote(operator)} ${complaint}`)
    } else matchExpressions.push({ key, operator: known, values: [...values].sort(compareText) })
  }
  return { matchLabels: Object.fromEntries(matchLabels), matchExpressions }
}

function parsed(text: string): readonly LabelRequirement[] {
  try {
    return parseSelector(text).requirements
  } catch (cause) {
    throw new Error(`couldn't parse the selector string "${text}": ${(cause as Error).message}`, { cause })
  }
}

/** As a plain map, for kinds with map selectors. Throws if it is not expressible. */
export function labelSelectorAsMap(selector: LabelSelector): Record<string, string> {
  const labels = new Map(Object.entries(selector.matchLabels ?? {}))
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    if (!textOperators.has(operator)) throw new Error(`${goQuote(operator)} is not a valid selector operator`)
    const format = 'cannot be converted into the old label selector format'
    if (operator !== 'In') throw new Error(`operator ${goQuote(operator)} ${format}`)
    if (values.length !== 1) throw new Error(`operator "In" without a single value ${format}`)
    labels.set(key, values[0] as string)
  }
  return Object.fromEntries(labels)
}

/** Faults that an update may keep, because the old object has them. */
export interface LabelSelectorTolerance {
  readonly invalidValues?: boolean
  readonly unknownOperators?: boolean
}

export function validateLabelSelector(
  path: FieldPath,
  selector: LabelSelector | null | undefined,
  tolerance: LabelSelectorTolerance = {},
): FieldError[] {
  if (selector === null || selector === undefined) return []
  const expressions = path.child('matchExpressions')
  return [
    ...validateLabels(path.child('matchLabels'), selector.matchLabels),
    ...expressions.each(selector.matchExpressions, (path, one) =>
      validateLabelSelectorRequirement(path, one, tolerance),
    ),
  ]
}

/** True if it has an invalid label value: old objects with such selectors must stay writable. */
export function hasInvalidLabelValue(selector: LabelSelector | null | undefined): boolean {
  const values = (selector?.matchExpressions ?? []).flatMap((one) => one.values ?? [])
  return values.some((value) => labelValue(value).length > 0)
}

export function validateLabelSelectorRequirement(
  field: FieldPath,
  { key, operator, values = [] }: LabelSelectorRequirement,
  tolerance: LabelSelectorTolerance = {},
): FieldError[] {
  const path = field.child('values')
  return collectErrors(
    validateOperator(field, operator, values.length, tolerance),
    validateLabelName(field.child('key'), key ?? ''),
    !tolerance.invalidValues && path.each(values, (path, value) => path.check(value, labelValue)),
  )
}

function validateOperator(
  path: FieldPath,
  operator: string | undefined,
  count: number,
  { unknownOperators }: LabelSelectorTolerance,
): FieldError[] {
  const values = path.child('values')
  if (operator === 'In' || operator === 'NotIn') {
    return count > 0 ? [] : [values.required("must be specified when `operator` is 'In' or 'NotIn'")]
  }
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    const complaint = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    return count === 0 ? [] : [values.forbidden(complaint)]
  }
  if (unknownOperators) return []
  return [path.child('operator').invalid(asJson(operator ?? ''), 'not a valid selector operator')]
}
