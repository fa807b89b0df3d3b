/** Amounts of resources: `quantity('1.5Gi').isGreaterThan(…)`. */
import { defineLibrary, free, member, type Library } from '../library.ts'
import { BOOL, DOUBLE, INT, STRING, opaque } from '../type.ts'

const QUANTITY = opaque('kubernetes.Quantity')

export const quantity: Library = defineLibrary('kubernetes.quantity', {
  quantity: [free('string_to_quantity', [STRING], QUANTITY)],
  isQuantity: [free('is_quantity_string', [STRING], BOOL)],
  sign: [free('quantity_sign', [QUANTITY], INT)],
  isGreaterThan: [member('quantity_is_greater_than', [QUANTITY, QUANTITY], BOOL)],
  isLessThan: [member('quantity_is_less_than', [QUANTITY, QUANTITY], BOOL)],
  compareTo: [member('quantity_compare_to', [QUANTITY, QUANTITY], INT)],
  asApproximateFloat: [member('quantity_get_float', [QUANTITY], DOUBLE)],
  asInteger: [member('quantity_get_int', [QUANTITY], INT)],
  isInteger: [member('quantity_is_integer', [QUANTITY], BOOL)],
  add: [member('quantity_add', [QUANTITY, QUANTITY], QUANTITY), member('quantity_add_int', [QUANTITY, INT], QUANTITY)],
  sub: [member('quantity_sub', [QUANTITY, QUANTITY], QUANTITY), member('quantity_sub_int', [QUANTITY, INT], QUANTITY)],
})
