/** Validates device selectors, and driver-specific configuration of devices. */
import type { DeviceSelector, DeviceToleration, OpaqueDeviceConfiguration } from '#apis/resource/v1.ts'
import { byteLength } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { labelValue } from '#meta/validation/names.ts'
import { requiredOneOf, validateLabelName } from '#meta/validation/rules.ts'
import { compileSelector, MAX_SELECTOR_COST } from '#model/dra/selector.ts'
import { expressionErrors } from '#model/expressions/compile.ts'
import { validateDriverName } from '#model/pod-spec/volumes/volume-sources.ts'

import { validateList } from './lists.ts'

const MAX_PARAMETERS_BYTES = 10 * 1024
const MAX_EXPRESSION_BYTES = 10 * 1024
const MAX_SELECTORS = 32

/** `stored`: unchanged from the old object; then it may exceed the current limit. */
export function validateDeviceConfiguration(
  path: FieldPath,
  { opaque }: { readonly opaque?: OpaqueDeviceConfiguration },
  stored = false,
): FieldError[] {
  const field = path.child('opaque')
  if (opaque === undefined) return [field.required()]
  return [
    ...validateDriverName(field.child('driver'), opaque.driver),
    ...validateRawObject(field.child('parameters'), opaque.parameters, stored),
  ]
}

/** An object of any kind, in JSON. */
export function validateRawObject(path: FieldPath, value: unknown, stored = false): FieldError[] {
  if (value === undefined || value === null) return [path.required()]
  if (!stored && byteLength(JSON.stringify(value)) > MAX_PARAMETERS_BYTES) return [path.tooLong(MAX_PARAMETERS_BYTES)]
  if (typeof value === 'object' && !Array.isArray(value)) return []
  return [path.invalid('<value omitted>', 'must be a valid JSON object')]
}

export function validateSelectors(path: FieldPath, selectors: readonly DeviceSelector[] | undefined): FieldError[] {
  return validateList(path, selectors, MAX_SELECTORS, (path, { cel }) => {
    if (cel === undefined) return [path.child('cel').required()]
    const expressionPath = path.child('cel.expression')
    if (byteLength(cel.expression) > MAX_EXPRESSION_BYTES) return [expressionPath.tooLong(MAX_EXPRESSION_BYTES)]
    const selector = compileSelector(cel.expression)
    if (selector.fault !== undefined) return expressionErrors(expressionPath, selector)
    return selector.maxCost() > MAX_SELECTOR_COST ? [expressionPath.forbidden('too complex, exceeds cost limit')] : []
  })
}

export const taintEffects: readonly string[] = ['NoSchedule', 'NoExecute', 'None']

export function validateToleration(path: FieldPath, toleration: DeviceToleration): FieldError[] {
  const { key = '', operator = '', value = '', effect = '' } = toleration
  return collectErrors(
    key !== '' && validateLabelName(path.child('key'), key),
    validateOperator(path, operator, value),
    effect !== '' && !taintEffects.includes(effect) && path.child('effect').notInSet(asJson(effect), taintEffects),
  )
}

function validateOperator(path: FieldPath, operator: string, value: string): FieldError[] {
  const field = path.child('value')
  if (operator === 'Exists') {
    return value === '' ? [] : [field.invalid(value, 'must be empty for operator `Exists`')]
  }
  if (operator === 'Equal') return field.check(value, labelValue)
  return requiredOneOf(path.child('operator'), operator, ['Equal', 'Exists'])
}

interface BindingConditions {
  readonly bindingConditions?: readonly string[]
  readonly bindingFailureConditions?: readonly string[]
}

const MAX_CONDITIONS = 4

/** Conditions that a driver reports before a pod is bound, and its failure conditions. */
export function validateBindingConditions(path: FieldPath, conditions: BindingConditions): FieldError[] {
  const { bindingConditions: good = [], bindingFailureConditions: bad = [] } = conditions
  const goodField = path.child('bindingConditions')
  const badField = path.child('bindingFailureConditions')
  const [isRepeatedGood, isRepeatedBad] = [createRepetition(), createRepetition()]
  const goodNames = new Set(good)
  const overlap = 'bindingFailureConditions must not overlap with bindingConditions'
  return collectErrors(
    validateList(goodField, good, MAX_CONDITIONS, validateLabelName),
    validateList(badField, bad, MAX_CONDITIONS, validateLabelName),
    goodField.each(good, (path, condition) => isRepeatedGood(condition) && path.duplicate(condition)),
    badField.each(bad, (path, condition) =>
      collectErrors(
        isRepeatedBad(condition) && path.duplicate(condition),
        goodNames.has(condition) && path.invalid(condition, overlap),
      ),
    ),
    good.length === 0 &&
      bad.length > 0 &&
      goodField.invalid(null, 'bindingConditions are required to use bindingFailureConditions'),
    bad.length === 0 &&
      good.length > 0 &&
      badField.invalid(null, 'bindingFailureConditions are required to use bindingConditions'),
  )
}
