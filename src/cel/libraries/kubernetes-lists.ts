/** The CEL library of Kubernetes' list functions: sum, min, max, indexOf, isSorted. */
import { estimateTraversal, traverseFirst } from '../cost/costs.ts'
import { defineLibrary, member, type Library } from '../library.ts'
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  parameter,
  type CelType,
} from '../type.ts'
import { Double, Failure, type ListValue, NO_SUCH_OVERLOAD, Uint, type Result, type Value } from '../value.ts'
import { add } from '../values/arithmetic.ts'
import { compare, isComparable } from '../values/compare.ts'
import { equal } from '../values/equality.ts'
import { Duration } from '../values/time.ts'

const A = parameter('A')

const summable: readonly (readonly [string, CelType])[] = [
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['duration', DURATION],
]

const comparable: readonly (readonly [string, CelType])[] = [
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['bool', BOOL],
  ['duration', DURATION],
  ['timestamp', TIMESTAMP],
  ['string', STRING],
  ['bytes', BYTES],
]

const zeros: Readonly<Record<string, Value>> = {
  int: 0,
  uint: new Uint(0n),
  double: new Double(0),
  duration: new Duration(0n),
}

function isSorted(list: ListValue): Result {
  for (let at = 0; at < list.size; at++) {
    const value = list.at(at)
    if (value instanceof Failure) return value
    if (!isComparable(value)) return NO_SUCH_OVERLOAD
    // Values that cannot be compared count as sorted.
    const order = at === 0 ? 0 : compare(list.at(at - 1) as Value, value)
    if (!(order instanceof Failure) && order > 0) return false
  }
  return true
}

function sum(list: ListValue, zero: Value): Result {
  let total: Value = zero
  for (let at = 0; at < list.size; at++) {
    const value = list.at(at)
    const next: Result = value instanceof Failure ? value : add(total, value)
    if (next instanceof Failure) return next
    total = next
  }
  return total
}

/** The least or greatest element, by the sign that a better one has. */
function extreme(list: ListValue, name: string, sign: number): Result {
  let best: Value | undefined
  for (let at = 0; at < list.size; at++) {
    const value = list.at(at)
    if (value instanceof Failure) return value
    if (!isComparable(value)) return NO_SUCH_OVERLOAD
    const order = best === undefined ? sign : compare(value, best)
    if (!(order instanceof Failure) && Math.sign(order) === sign) best = value
  }
  return best === undefined ? new Failure(`${name} called on empty list`) : best
}

function positionFrom(list: ListValue, item: Value, start: number, step: 1 | -1): number {
  for (let at = start; at >= 0 && at < list.size; at += step) {
    if (equal(list.at(at), item) === true) return at
  }
  return -1
}

/** All of them look at every element once. */
const once = { cost: traverseFirst, dynamicCost: traverseFirst, estimate: estimateTraversal }

export const kubernetesLists: Library = defineLibrary('kubernetes.lists', {
  isSorted: comparable.map(([name, type]) =>
    member(`list_${name}_is_sorted_bool`, [listOf(type)], BOOL, { ...once, evaluate: isSorted }),
  ),
  sum: summable.map(([name, type]) =>
    member(`list_${name}_sum_${name}`, [listOf(type)], type, {
      ...once,
      evaluate: (list: ListValue) => sum(list, zeros[name] as Value),
    }),
  ),
  max: comparable.map(([name, type]) =>
    member(`list_${name}_max_${name}`, [listOf(type)], type, {
      ...once,
      evaluate: (list: ListValue) => extreme(list, 'max', 1),
    }),
  ),
  min: comparable.map(([name, type]) =>
    member(`list_${name}_min_${name}`, [listOf(type)], type, {
      ...once,
      evaluate: (list: ListValue) => extreme(list, 'min', -1),
    }),
  ),
  indexOf: [
    member('list_a_index_of_int', [listOf(A), A], INT, {
      ...once,
      evaluate: (list: ListValue, item: Value) => positionFrom(list, item, 0, 1),
    }),
  ],
  lastIndexOf: [
    member('list_a_last_index_of_int', [listOf(A), A], INT, {
      ...once,
      evaluate: (list: ListValue, item: Value) => positionFrom(list, item, list.size - 1, -1),
    }),
  ],
})
