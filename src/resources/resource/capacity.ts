/** How much of a device there is, and how much of it a request may take when several share it. */
import type { CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity } from '#apis/resource/v1.ts'
import { addQuantities, compareQuantities, parseQuantity, quantityText, quantityValue } from '#meta/quantity.ts'
import { child, type FieldError, forbidden, index, invalid, required } from '#meta/validation/field-error.ts'

import { validateSet } from './lists.ts'

const MAX_VALID_VALUES = 10

export function validateCapacity(
  path: string,
  { value, requestPolicy }: DeviceCapacity,
  shared: boolean,
): FieldError[] {
  if (requestPolicy === undefined) return []
  const field = child(path, 'requestPolicy')
  return shared
    ? validatePolicy(field, requestPolicy, value)
    : [forbidden(field, 'allowMultipleAllocations must be true')]
}

function validatePolicy(path: string, policy: CapacityRequestPolicy, capacity: string): FieldError[] {
  const { validValues = [], validRange: range } = policy
  const given = policy.default ?? undefined
  const needed = (by: string): FieldError[] => [required(child(path, 'default'), `required when ${by} is defined`)]
  if (validValues.length > 0 && range !== undefined) {
    const detail = 'cannot specify "validValues" and "validRange" at the same time'
    return [forbidden(path, `exactly one policy can be specified, ${detail}`)]
  }
  if (validValues.length > 0) {
    return given === undefined
      ? needed('validValues')
      : validateValues(child(path, 'validValues'), validValues, given, capacity)
  }
  if (range === undefined) return []
  return given === undefined ? needed('validRange') : validateRange(child(path, 'validRange'), range, given, capacity)
}

function compare(a: string, b: string): number {
  return compareQuantities(parseQuantity(a), parseQuantity(b))
}

function validateValues(field: string, values: readonly string[], given: string, capacity: string): FieldError[] {
  // Too many are not looked at, so the default is not found among them either.
  const offered = values.length > MAX_VALID_VALUES ? [] : values
  return [
    ...values.flatMap((value, at) => {
      const previous = values[at - 1]
      if (previous === undefined || compare(previous, value) <= 0) return []
      return [invalid(index(field, at), value, 'values must be sorted in ascending order')]
    }),
    ...validateSet(field, values, MAX_VALID_VALUES, {
      check: (path, value) =>
        compare(value, capacity) > 0 ? [invalid(path, value, `option is larger than capacity value: ${capacity}`)] : [],
      identity: (value) => String(quantityValue(parseQuantity(value))),
    }),
    ...(offered.some((value) => compare(value, given) === 0)
      ? []
      : [invalid(field, given, 'default value is not valid according to the requestPolicy')]),
  ]
}

function validateRange(path: string, range: CapacityRequestPolicyRange, given: string, capacity: string): FieldError[] {
  const { min, max } = range
  const minField = child(path, 'min')
  const maxField = child(path, 'max')
  if (min === undefined) return [required(minField, 'required when validRange is defined')]
  const refuse = (refused: boolean, field: string, value: string, detail: string): FieldError[] =>
    refused ? [invalid(field, value, detail)] : []
  const errors = [
    ...refuse(compare(min, capacity) > 0, minField, min, `min is larger than capacity value: ${capacity}`),
    ...refuse(compare(given, min) < 0, minField, given, `default is less than min: ${min}`),
  ]
  if (max !== undefined) {
    errors.push(
      ...refuse(compare(min, max) > 0, maxField, min, `min is larger than max: ${max}`),
      ...refuse(compare(max, capacity) > 0, maxField, max, `max is larger than capacity value: ${capacity}`),
      ...refuse(compare(given, max) > 0, maxField, given, `default is more than max: ${max}`),
    )
  }
  return [...errors, ...validateStep(child(path, 'step'), { ...range, min }, given, capacity)]
}

function validateStep(
  field: string,
  { min, max, step }: CapacityRequestPolicyRange & { readonly min: string },
  given: string,
  capacity: string,
): FieldError[] {
  if (step === undefined) return []
  const one = quantityText(addQuantities(parseQuantity(min), parseQuantity(step)))
  const value = (text: string): number => quantityValue(parseQuantity(text))
  const fits = (text: string): boolean => (value(text) - value(min)) % value(step) === 0
  return [
    ...(compare(one, capacity) > 0
      ? [invalid(field, step, `one step ${one} is larger than capacity value: ${capacity}`)]
      : []),
    ...[given, ...(max === undefined ? [] : [max])]
      .filter((text) => !fits(text))
      .map((text) => invalid(field, text, `value is not a multiple of a given step (${step}) from (${min})`)),
  ]
}
