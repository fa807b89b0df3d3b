/** The CEL library of resource quantities: `quantity('1.5Gi').isGreaterThan(…)`. */
import {
  addQuantities,
  compareQuantities,
  parseQuantity,
  quantityInt64,
  quantityNumber,
  quantityOf,
  quantitySign,
  quantityText,
  subtractQuantities,
  type Quantity,
} from '#meta/quantity.ts'

import { estimateRead, readFirst } from '../cost/costs.ts'
import { defineLibrary, free, member, type Library } from '../library.ts'
import { BOOL, DOUBLE, INT, STRING, opaque } from '../type.ts'
import { Double, Failure, OpaqueValue, intOf, type Result } from '../value.ts'

const QUANTITY = opaque('kubernetes.Quantity')

class QuantityValue extends OpaqueValue {
  readonly typeName = 'kubernetes.Quantity'
  readonly quantity: Quantity
  /**
   * The power of ten that upstream keeps beside its integer, which it does not reduce: `1000m` is no integer there.
   * Undefined where it has no integer but a decimal of any size.
   */
  readonly scale: number | undefined
  constructor(quantity: Quantity, scale: number | undefined) {
    super()
    this.quantity = quantity
    this.scale = scale
  }
  equals(other: QuantityValue): boolean {
    return compareQuantities(this.quantity, other.quantity) === 0
  }
  override toString(): string {
    return quantityText(this.quantity)
  }
}

/** Fails for text that is none. */
export function toQuantity(text: string): Result {
  try {
    return new QuantityValue(parseQuantity(text), scaleOf(text))
  } catch (error) {
    return new Failure((error as Error).message)
  }
}

const powers: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
/** The number of digits that always fits into an int64. */
const MAX_DIGITS = 18

function scaleOf(text: string): number | undefined {
  const [, whole = '', fraction = '', suffix = ''] = /^[+-]?0*([0-9]*)\.?([0-9]*)(.*)$/.exec(text) ?? []
  const places = whole.length + fraction.length
  if (suffix.endsWith('i')) {
    const exponent = 10 * ('KMGTPE'.indexOf(suffix.charAt(0)) + 1)
    return fraction === '' && 14 - whole.length - Math.trunc(exponent * 0.3) >= 0 ? 0 : undefined
  }
  const exponent = powers[suffix] ?? Number(suffix.slice(1))
  const scale = exponent - fraction.length
  return places <= MAX_DIGITS && scale >= -9 ? scale : undefined
}

const order = (a: QuantityValue, b: QuantityValue): number => Math.sign(compareQuantities(a.quantity, b.quantity))

const NO_INTEGER = new Failure('cannot convert value to integer')

function toInteger({ quantity, scale }: QuantityValue): Result {
  const value = scale === undefined || scale < 0 ? undefined : quantityInt64(quantity)
  return value === undefined ? NO_INTEGER : intOf(value)
}

type Operation = (a: Quantity, b: Quantity) => Quantity

const combine =
  (operate: Operation) =>
  (a: QuantityValue, b: QuantityValue): Result =>
    new QuantityValue(operate(a.quantity, b.quantity), commonScale(a, b))

const combineInt =
  (operate: Operation) =>
  (a: QuantityValue, b: number | bigint): Result =>
    combine(operate)(a, new QuantityValue(quantityOf(b, 'DecimalExponent'), 0))

/** Zero takes part in nothing. */
function commonScale(a: QuantityValue, b: QuantityValue): number | undefined {
  if (a.scale === undefined || b.scale === undefined) return undefined
  if (quantitySign(a.quantity) === 0) return b.scale
  return quantitySign(b.quantity) === 0 ? a.scale : Math.min(a.scale, b.scale)
}

const reading = { cost: readFirst, estimate: estimateRead }

export const quantity: Library = defineLibrary('kubernetes.quantity', {
  quantity: [free('string_to_quantity', [STRING], QUANTITY, { ...reading, evaluate: toQuantity })],
  isQuantity: [
    free('is_quantity_string', [STRING], BOOL, {
      ...reading,
      evaluate: (text: string) => !(toQuantity(text) instanceof Failure),
    }),
  ],
  sign: [free('quantity_sign', [QUANTITY], INT, { evaluate: ({ quantity }: QuantityValue) => quantitySign(quantity) })],
  isGreaterThan: [
    member('quantity_is_greater_than', [QUANTITY, QUANTITY], BOOL, {
      evaluate: (a: QuantityValue, b: QuantityValue) => order(a, b) > 0,
    }),
  ],
  isLessThan: [
    member('quantity_is_less_than', [QUANTITY, QUANTITY], BOOL, {
      evaluate: (a: QuantityValue, b: QuantityValue) => order(a, b) < 0,
    }),
  ],
  compareTo: [member('quantity_compare_to', [QUANTITY, QUANTITY], INT, { evaluate: order })],
  asApproximateFloat: [
    member('quantity_get_float', [QUANTITY], DOUBLE, {
      evaluate: ({ quantity }: QuantityValue) => new Double(quantityNumber(quantity)),
    }),
  ],
  asInteger: [member('quantity_get_int', [QUANTITY], INT, { evaluate: toInteger })],
  isInteger: [
    member('quantity_is_integer', [QUANTITY], BOOL, {
      evaluate: (value: QuantityValue) => toInteger(value) !== NO_INTEGER,
    }),
  ],
  add: [
    member('quantity_add', [QUANTITY, QUANTITY], QUANTITY, { evaluate: combine(addQuantities) }),
    member('quantity_add_int', [QUANTITY, INT], QUANTITY, { evaluate: combineInt(addQuantities) }),
  ],
  sub: [
    member('quantity_sub', [QUANTITY, QUANTITY], QUANTITY, { evaluate: combine(subtractQuantities) }),
    member('quantity_sub_int', [QUANTITY, INT], QUANTITY, { evaluate: combineInt(subtractQuantities) }),
  ],
})
