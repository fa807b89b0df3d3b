/** Helpers for maps from resource name to quantity, in quotas, limits and capacities. */
import { compareText } from '#lib/go/text.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'

export type ResourceList = Readonly<Record<string, string>>

/** Sorted by name, because Go's maps have no order and answers must not vary. */
export function sortedAmounts(list: ResourceList | undefined): [name: string, amount: string][] {
  return Object.entries(list ?? {}).sort(([a], [b]) => compareText(a, b))
}

/** The amount of `name`, undefined if absent. */
export function amountOf(list: ResourceList | undefined, name: string): string | undefined {
  return list !== undefined && Object.hasOwn(list, name) ? list[name] : undefined
}

/** A capacity: only its sign is validated, and errors print a plain number. */
export function validateCapacity(path: FieldPath, amount: string): FieldError[] {
  const value = quantityValue(parseQuantity(amount))
  return value < 0 ? [path.invalid(value, 'must be a valid resource quantity')] : []
}
