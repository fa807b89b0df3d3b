/**
 * Computes the consumed capacity of a device that several claims share, by the request policy of each capacity. Pure.
 */
import type { CapacityRequestPolicyRange, CapacityRequirements, Device, DeviceCapacity } from '#apis/resource/v1.ts'
import {
  addQuantities,
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityOf,
  quantityValue,
} from '#meta/quantity.ts'

export type CapacityAmounts = ReadonlyMap<string, Quantity>

/** The consumption of each capacity. Undefined: the device lacks the capacity, or its policy forbids the amount. */
export function consumptionOf(
  { capacity = {} }: Device,
  { requests = {} }: CapacityRequirements = {},
): CapacityAmounts | undefined {
  if (Object.keys(requests).some((name) => capacity[name] === undefined)) return undefined
  const amounts = new Map<string, Quantity>()
  for (const [name, one] of Object.entries(capacity)) {
    const amount = amountOf(one, requests[name])
    if (violates(one, amount)) return undefined
    amounts.set(name, amount)
  }
  return amounts
}

/** Whether each capacity has room for more. */
export function hasRoom(
  { capacity = {} }: Device,
  more: CapacityAmounts,
  consumed: readonly CapacityAmounts[],
): boolean {
  return Object.entries(capacity).every(([name, { value }]) => {
    const all = consumed.reduce(
      (sum, amounts) => addQuantities(sum, amounts.get(name) ?? NOTHING),
      more.get(name) ?? NOTHING,
    )
    return compareQuantities(all, parseQuantity(value)) <= 0
  })
}

const NOTHING = quantityOf(0)

/** Without a request: the policy's default, or the whole capacity. A request is rounded up to a valid amount. */
function amountOf({ value, requestPolicy }: DeviceCapacity, requested: string | undefined): Quantity {
  if (requested === undefined) return parseQuantity(requestPolicy?.default ?? value)
  const amount = parseQuantity(requested)
  const { validRange, validValues } = requestPolicy ?? {}
  if (validRange?.min !== undefined) return roundedUp(amount, validRange, parseQuantity(validRange.min))
  return validValues?.map(parseQuantity).find((valid) => compareQuantities(amount, valid) <= 0) ?? amount
}

function roundedUp(amount: Quantity, { step }: CapacityRequestPolicyRange, least: Quantity): Quantity {
  if (compareQuantities(amount, least) < 0) return least
  if (step === undefined) return amount
  const [base, by] = [quantityValue(least), quantityValue(parseQuantity(step))]
  return quantityOf(base + by * Math.ceil((quantityValue(amount) - base) / by), 'BinarySI')
}

function violates({ requestPolicy = { default: null } }: DeviceCapacity, amount: Quantity): boolean {
  const { default: usual, validRange, validValues = [] } = requestPolicy
  const isEqual = (text: string): boolean => compareQuantities(amount, parseQuantity(text)) === 0
  if (usual !== null && isEqual(usual)) return false
  if (validRange === undefined) return validValues.length > 0 && !validValues.some(isEqual)
  const { min = '0', max, step } = validRange
  if (max !== undefined && compareQuantities(amount, parseQuantity(max)) > 0) return true
  if (step === undefined) return false
  return (quantityValue(amount) - quantityValue(parseQuantity(min))) % quantityValue(parseQuantity(step)) !== 0
}
