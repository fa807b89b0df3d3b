/** metav1.LabelSelector, the structured form of a label selector: from it, to it, and its rules. */
import { compareText, goQuote } from '#lib/go-text.ts'

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
import { asJson, child, type FieldError, forbidden, index, invalid, required } from './validation/field-error.ts'
import { labelValue } from './validation/names.ts'
import { complaining, validateLabelName, validateLabels } from './validation/rules.ts'

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

/** An absent selector selects nothing, an empty one everything. Throws when it breaks the rules. */
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

/** What is shown to people: `app=web,t in (x,y)`, `<none>` when empty or absent, `<error>` when it breaks the rules. */
export function labelSelectorText(selector: LabelSelector | null | undefined): string {
  try {
    return selectorText(asSelector(selector)) || '<none>'
  } catch {
    return '<error>'
  }
}

/** As Go writes the structured form. */
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

/** Reads the text form into the structured one. Throws on bad text and on `>` and `<`, which have no structured form. */
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

/** As a plain map, for kinds that have no more than that. Throws when the selector says more. */
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

/** What an update may keep because the old object had it already. */
export interface LabelSelectorTolerance {
  readonly invalidValues?: boolean
  readonly unknownOperators?: boolean
}

export function validateLabelSelector(
  field: string,
  selector: LabelSelector | null | undefined,
  tolerance: LabelSelectorTolerance = {},
): FieldError[] {
  if (selector === null || selector === undefined) return []
  const expressions = child(field, 'matchExpressions')
  return [
    ...validateLabels(child(field, 'matchLabels'), selector.matchLabels),
    ...(selector.matchExpressions ?? []).flatMap((one, at) =>
      validateLabelSelectorRequirement(index(expressions, at), one, tolerance),
    ),
  ]
}

/** Whether a value in it is no label value: such selectors exist in old objects and must stay writable. */
export function hasInvalidLabelValue(selector: LabelSelector | null | undefined): boolean {
  const values = (selector?.matchExpressions ?? []).flatMap((one) => one.values ?? [])
  return values.some((value) => labelValue(value).length > 0)
}

export function validateLabelSelectorRequirement(
  field: string,
  { key, operator, values = [] }: LabelSelectorRequirement,
  tolerance: LabelSelectorTolerance = {},
): FieldError[] {
  const path = child(field, 'values')
  return [
    ...validateOperator(field, operator, values.length, tolerance),
    ...validateLabelName(child(field, 'key'), key ?? ''),
    ...(tolerance.invalidValues
      ? []
      : values.flatMap((value, at) => complaining(index(path, at), value, labelValue(value)))),
  ]
}

function validateOperator(
  field: string,
  operator: string | undefined,
  count: number,
  { unknownOperators }: LabelSelectorTolerance,
): FieldError[] {
  const values = child(field, 'values')
  if (operator === 'In' || operator === 'NotIn') {
    return count > 0 ? [] : [required(values, "must be specified when `operator` is 'In' or 'NotIn'")]
  }
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    const complaint = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
    return count === 0 ? [] : [forbidden(values, complaint)]
  }
  if (unknownOperators) return []
  return [invalid(child(field, 'operator'), asJson(operator ?? ''), 'not a valid selector operator')]
}
