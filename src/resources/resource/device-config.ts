/** How drivers are told to set devices up: parameters that only they understand; and how devices are chosen. */
import type { DeviceSelector, DeviceToleration, OpaqueDeviceConfiguration } from '#apis/resource/v1.ts'
import { byteLength } from '#lib/go-text.ts'
import { createRepetition } from '#lib/repetition.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  notInSet,
  notSupported,
  required,
  tooLong,
} from '#meta/validation/field-error.ts'
import { labelValue } from '#meta/validation/names.ts'
import { complaining, validateLabelName } from '#meta/validation/rules.ts'
import { compileSelector, MAX_SELECTOR_COST } from '#model/dra/selector.ts'
import { expressionErrors } from '#model/expressions/compile.ts'
import { validateDriverName } from '#model/pod-spec/volume-sources.ts'

import { validateList } from './lists.ts'

const MAX_PARAMETERS_BYTES = 10 * 1024
const MAX_EXPRESSION_BYTES = 10 * 1024
const MAX_SELECTORS = 32

/** `stored`: as it was in the old object; then it may be longer than is allowed now. */
export function validateDeviceConfiguration(
  path: string,
  { opaque }: { readonly opaque?: OpaqueDeviceConfiguration },
  stored = false,
): FieldError[] {
  const field = child(path, 'opaque')
  if (opaque === undefined) return [required(field)]
  return [
    ...validateDriverName(child(field, 'driver'), opaque.driver),
    ...validateRawObject(child(field, 'parameters'), opaque.parameters, stored),
  ]
}

/** An object of any kind, in JSON. */
export function validateRawObject(field: string, value: unknown, stored = false): FieldError[] {
  if (value === undefined || value === null) return [required(field)]
  if (!stored && byteLength(JSON.stringify(value)) > MAX_PARAMETERS_BYTES) return [tooLong(field, MAX_PARAMETERS_BYTES)]
  if (typeof value === 'object' && !Array.isArray(value)) return []
  return [invalid(field, '<value omitted>', 'must be a valid JSON object')]
}

export function validateSelectors(field: string, selectors: readonly DeviceSelector[] | undefined): FieldError[] {
  return validateList(field, selectors, MAX_SELECTORS, (path, { cel }) => {
    if (cel === undefined) return [required(child(path, 'cel'))]
    const place = child(path, 'cel.expression')
    if (byteLength(cel.expression) > MAX_EXPRESSION_BYTES) return [tooLong(place, MAX_EXPRESSION_BYTES)]
    const selector = compileSelector(cel.expression)
    if (selector.fault !== undefined) return expressionErrors(place, selector)
    return selector.maxCost() > MAX_SELECTOR_COST ? [forbidden(place, 'too complex, exceeds cost limit')] : []
  })
}

export const taintEffects: readonly string[] = ['NoSchedule', 'NoExecute', 'None']

export function validateToleration(path: string, toleration: DeviceToleration): FieldError[] {
  const { key = '', operator = '', value = '', effect = '' } = toleration
  return [
    ...(key === '' ? [] : validateLabelName(child(path, 'key'), key)),
    ...validateOperator(path, operator, value),
    ...(effect === '' || taintEffects.includes(effect)
      ? []
      : [notInSet(child(path, 'effect'), asJson(effect), taintEffects)]),
  ]
}

function validateOperator(path: string, operator: string, value: string): FieldError[] {
  const field = child(path, 'value')
  if (operator === 'Exists') {
    return value === '' ? [] : [invalid(field, value, 'must be empty for operator `Exists`')]
  }
  if (operator === 'Equal') return complaining(field, value, labelValue(value))
  const at = child(path, 'operator')
  return [operator === '' ? required(at) : notSupported(at, asJson(operator), ['Equal', 'Exists'])]
}

interface BindingConditions {
  readonly bindingConditions?: readonly string[]
  readonly bindingFailureConditions?: readonly string[]
}

const MAX_CONDITIONS = 4

/** Conditions that a driver reports before a pod is bound, and those by which it reports that it failed. */
export function validateBindingConditions(path: string, conditions: BindingConditions): FieldError[] {
  const { bindingConditions: good = [], bindingFailureConditions: bad = [] } = conditions
  const goodField = child(path, 'bindingConditions')
  const badField = child(path, 'bindingFailureConditions')
  const [isRepeatedGood, isRepeatedBad] = [createRepetition(), createRepetition()]
  const goodNames = new Set(good)
  const overlap = 'bindingFailureConditions must not overlap with bindingConditions'
  return [
    ...validateList(goodField, good, MAX_CONDITIONS, validateLabelName),
    ...validateList(badField, bad, MAX_CONDITIONS, validateLabelName),
    ...good.flatMap((condition, at) => (isRepeatedGood(condition) ? [duplicate(index(goodField, at), condition)] : [])),
    ...bad.flatMap((condition, at) => [
      ...(isRepeatedBad(condition) ? [duplicate(index(badField, at), condition)] : []),
      ...(goodNames.has(condition) ? [invalid(index(badField, at), condition, overlap)] : []),
    ]),
    ...(good.length === 0 && bad.length > 0
      ? [invalid(goodField, null, 'bindingConditions are required to use bindingFailureConditions')]
      : []),
    ...(bad.length === 0 && good.length > 0
      ? [invalid(badField, null, 'bindingFailureConditions are required to use bindingConditions')]
      : []),
  ]
}
