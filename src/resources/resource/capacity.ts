/** Validates the capacity of a device, and the limits of requests that share it. */
import type { CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity } from '#apis/resource/v1.ts'
import { addQuantities, compareQuantities, parseQuantity, quantityText, quantityValue } from '#meta/quantity.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'

import { validateSet } from './lists.ts'

const MAX_VALID_VALUES = 10

export function validateCapacity(
  path: FieldPath,
  { value, requestPolicy }: DeviceCapacity,
  shared: boolean,
): FieldError[] {
  if (requestPolicy === undefined) return []
  const field = path.child('requestPolicy')
  return shared
    ? validatePolicy(field, requestPolicy, value)
    : [field.forbidden('allowMultipleAllocations must be true')]
}

function validatePolicy(path: FieldPath, policy: CapacityRequestPolicy, capacity: string): FieldError[] {
  const { validValues = [], validRange: range } = policy
  const given = policy.default ?? undefined
  const needed = (by: string): FieldError[] => [path.child('default').required(`required when ${by} is defined`)]
  if (validValues.length > 0 && range !== undefined) {
    const detail = 'cannot specify "validValues" and "validRange" at the same time'
    return [path.forbidden(`exactly one policy can be specified, ${detail}`)]
  }
  if (validValues.length > 0) {
    return given === undefined
      ? needed('validValues')
      : validateValues(path.child('validValues'), validValues, given, capacity)
  }
  if (range === undefined) return []
  return given === undefined ? needed('validRange') : validateRange(path.child('validRange'), range, given, capacity)
}

function compare(a: string, b: string): number {
  return compareQuantities(parseQuantity(a), parseQuantity(b))
}

function validateValues(path: FieldPath, values: readonly string[], given: string, capacity: string): FieldError[] {
  // Too many values are not validated, so the default is not searched among them either.
  const offered = values.length > MAX_VALID_VALUES ? [] : values
  return collectErrors(
    path.each(values, (path, value, at) => {
      const previous = values[at - 1]
      if (previous === undefined || compare(previous, value) <= 0) return []
      return [path.invalid(value, 'values must be sorted in ascending order')]
    }),
    validateSet(path, values, MAX_VALID_VALUES, {
      check: (path, value) =>
        compare(value, capacity) > 0 ? [path.invalid(value, `option is larger than capacity value: ${capacity}`)] : [],
      identity: (value) => String(quantityValue(parseQuantity(value))),
    }),
    !offered.some((value) => compare(value, given) === 0) &&
      path.invalid(given, 'default value is not valid according to the requestPolicy'),
  )
}

function validateRange(
  path: FieldPath,
  range: CapacityRequestPolicyRange,
  given: string,
  capacity: string,
): FieldError[] {
  const { min, max } = range
  const minField = path.child('min')
  const maxField = path.child('max')
  if (min === undefined) return [minField.required('required when validRange is defined')]
  const refuse = (refused: boolean, path: FieldPath, value: string, detail: string): FieldError[] =>
    refused ? [path.invalid(value, detail)] : []
  return collectErrors(
    refuse(compare(min, capacity) > 0, minField, min, `min is larger than capacity value: ${capacity}`),
    refuse(compare(given, min) < 0, minField, given, `default is less than min: ${min}`),
    max !== undefined &&
      collectErrors(
        refuse(compare(min, max) > 0, maxField, min, `min is larger than max: ${max}`),
        refuse(compare(max, capacity) > 0, maxField, max, `max is larger than capacity value: ${capacity}`),
        refuse(compare(given, max) > 0, maxField, given, `default is more than max: ${max}`),
      ),
    validateStep(path.child('step'), { ...range, min }, given, capacity),
  )
}

function validateStep(
  path: FieldPath,
  { min, max, step }: CapacityRequestPolicyRange & { readonly min: string },
  given: string,
  capacity: string,
): FieldError[] {
  if (step === undefined) return []
  const one = quantityText(addQuantities(parseQuantity(min), parseQuantity(step)))
  const value = (text: string): number => quantityValue(parseQuantity(text))
  const fits = (text: string): boolean => (value(text) - value(min)) % value(step) === 0
  return collectErrors(
    compare(one, capacity) > 0 && path.invalid(step, `one step ${one} is larger than capacity value: ${capacity}`),
    [given, ...(max === undefined ? [] : [max])]
      .filter((text) => !fits(text))
      .map((text) => path.invalid(text, `value is not a multiple of a given step (${step}) from (${min})`)),
  )
}
