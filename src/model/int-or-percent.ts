/** Resolves a number of pods or a percentage, for rolling updates and disruption budgets. */
import { type IntOrString, intValue } from '#meta/int-or-string.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'
import { percent } from '#meta/validation/names.ts'
import { nonNegative } from '#meta/validation/rules.ts'

/** Rejects negative numbers and texts that are no percentage; absent is valid. */
export function validateIntOrPercent(path: FieldPath, value: IntOrString | undefined): FieldError[] {
  if (typeof value === 'string') return path.check(value, percent)
  return nonNegative(path, value)
}

export function validateAtMostAll(path: FieldPath, value: IntOrString | undefined): FieldError[] {
  const share = value === undefined ? undefined : percentOf(value)
  return share === undefined || share <= 100 ? [] : [path.invalid(value, 'must not be greater than 100%')]
}

/** The number without its unit: only for comparison with zero. */
export function intOrPercentValue(value: IntOrString): number {
  return percentOf(value) ?? intValue(value)
}

function percentOf(value: IntOrString): number | undefined {
  if (typeof value !== 'string' || percent(value).length > 0) return undefined
  return Number(value.slice(0, -1))
}
