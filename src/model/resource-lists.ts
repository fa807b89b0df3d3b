/** Amounts by the name of the resource: what quotas, limits and capacities are made of. */
import { compareText } from '#lib/go-text.ts'
import { parseQuantity, quantityValue } from '#meta/quantity.ts'
import { type FieldError, invalid } from '#meta/validation/field-error.ts'

export type ResourceList = Readonly<Record<string, string>>

/** In order of the name, for Go's maps have none and answers must not vary. */
export function sortedAmounts(list: ResourceList | undefined): [name: string, amount: string][] {
  return Object.entries(list ?? {}).sort(([a], [b]) => compareText(a, b))
}

/** The amount of `name`, absent when the list has none of it. */
export function amountOf(list: ResourceList | undefined, name: string): string | undefined {
  return list !== undefined && Object.hasOwn(list, name) ? list[name] : undefined
}

/** A capacity: only its sign is judged, and the value is shown as a plain number. */
export function validateCapacity(field: string, amount: string): FieldError[] {
  const value = quantityValue(parseQuantity(amount))
  return value < 0 ? [invalid(field, value, 'must be a valid resource quantity')] : []
}
