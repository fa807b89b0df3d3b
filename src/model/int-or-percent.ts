/** A number of pods, or a share of them: what rolling updates and disruption budgets count in. */
import { type IntOrString, intValue } from '#meta/int-or-string.ts'
import { type FieldError, invalid } from '#meta/validation/field-error.ts'
import { percent } from '#meta/validation/names.ts'
import { complaining, nonNegative } from '#meta/validation/rules.ts'

/** Refuses numbers below zero and texts that are no percentage; absent is fine. */
export function validateIntOrPercent(field: string, value: IntOrString | undefined): FieldError[] {
  if (typeof value === 'string') return complaining(field, value, percent(value))
  return nonNegative(field, value)
}

export function validateAtMostAll(field: string, value: IntOrString | undefined): FieldError[] {
  const share = value === undefined ? undefined : percentOf(value)
  return share === undefined || share <= 100 ? [] : [invalid(field, value, 'must not be greater than 100%')]
}

/** The bare number, of pods or of hundredths: only fit to tell nothing from something. */
export function intOrPercentValue(value: IntOrString): number {
  return percentOf(value) ?? intValue(value)
}

function percentOf(value: IntOrString): number | undefined {
  if (typeof value !== 'string' || percent(value).length > 0) return undefined
  return Number(value.slice(0, -1))
}
