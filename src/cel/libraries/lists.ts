/** The CEL library of list functions, version 3 of cel-go's. */
import { sizeAt } from '../cost/costs.ts'
import { addSpans, fixed, MAX_UINT64, multiplySpans, scaleSpan } from '../cost/span.ts'
import { spendEffort } from '../effort.ts'
import {
  defineLibrary,
  free,
  member,
  type ArgumentEstimate,
  type CallEstimate,
  type Cost,
  type Library,
  type Span,
} from '../library.ts'
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  parameter,
  type CelType,
} from '../type.ts'
import { Failure, ListValue, isInt, typeNameOf, type Result, type Value } from '../value.ts'
import { compare, isComparable } from '../values/compare.ts'
import { equal } from '../values/equality.ts'
import { ArrayList, listValue, PickedList } from '../values/list.ts'
import { sizeOf } from '../values/size.ts'

const LIST = listOf(parameter('T'))

const comparable: readonly (readonly [string, CelType])[] = [
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['bool', BOOL],
  ['google.protobuf.Duration', DURATION],
  ['google.protobuf.Timestamp', TIMESTAMP],
  ['string', STRING],
  ['bytes', BYTES],
]

type Int = number | bigint

function slice(list: ListValue, start: Int, end: Int): Result {
  const call = `cannot slice(${start}, ${end})`
  if (start < 0 || end < 0) return new Failure(`${call}, negative indexes not supported`)
  if (start > end) return new Failure(`${call}, start index must be less than or equal to end index`)
  if (list.size < end) return new Failure(`${call}, list is length ${list.size}`)
  const first = Number(start)
  return new PickedList(Number(end) - first, (at) => list.at(first + at))
}

function flatten(list: ListValue, depth: Int): Result {
  if (depth < 0) return new Failure('level must be non-negative')
  const flat: Value[] = []
  const failure = append(list, Number(depth), flat)
  return failure ?? listValue(flat)
}

function append(list: ListValue, depth: number, flat: Value[]): Failure | undefined {
  spendEffort(list.size)
  for (let at = 0; at < list.size; at++) {
    const value = list.at(at)
    if (value instanceof Failure) return value
    const failure = value instanceof ListValue && depth > 0 ? append(value, depth - 1, flat) : undefined
    if (failure !== undefined) return failure
    if (!(value instanceof ListValue) || depth <= 0) flat.push(value)
  }
  return undefined
}

const NOT_COMPARABLE = new Failure('list elements must be comparable')
const NOT_ALIKE = new Failure('list elements must have the same type')

function sortBy(list: ListValue, keys: ListValue): Result {
  if (list.size !== keys.size) {
    const expected = '@sortByAssociatedKeys() expected a list of the same size as the associated keys list'
    return new Failure(`${expected}, but got ${list.size} and ${keys.size} elements respectively`)
  }
  if (list.size === 0) return list
  const values = Array.from({ length: keys.size }, (_, at) => keys.at(at))
  const failed = values.find((value) => value instanceof Failure)
  if (failed !== undefined) return failed
  const first = values[0] as Value
  if (!isComparable(first)) return NOT_COMPARABLE
  const type = typeNameOf(first)
  // Nothing is compared in a list of one, and so nothing is found out.
  if (values.some((value) => typeNameOf(value) !== type)) return NOT_ALIKE
  const order = values.map((_, at) => at)
  order.sort((a, b) => {
    const result = compare(values[a] as Value, values[b] as Value)
    return result instanceof Failure ? 0 : result
  })
  return listValue(order.map((at) => list.at(at) as Value))
}

function distinct(list: ListValue): Result {
  const unique: Value[] = []
  for (let at = 0; at < list.size; at++) {
    const value = list.at(at)
    if (value instanceof Failure) return value
    if (!unique.some((other) => equal(value, other) === true)) unique.push(value)
  }
  return list.size === 0 ? list : new ArrayList(unique)
}

/** A call, and a new list. */
const BASE = 11

/** Each with each: twice for every pair, a little more for texts. */
function selfCompareCost(list: Result): number {
  const size = sizeOf(list)
  const first = list instanceof ListValue && size > 0 ? list.at(0) : undefined
  const factor = typeof first === 'string' || first instanceof Uint8Array ? 2.1 : 2
  return Math.floor(size * size * factor) + BASE
}

const outputCost: Cost = (_a, _b, result) => sizeOf(result) + BASE
const sortCost: Cost = (list) => selfCompareCost(list)
const sortByCost: Cost = (_list, keys) => selfCompareCost(keys)

type Arguments = readonly ArgumentEstimate[]

const allocating = (factor: number, size: Span): CallEstimate => ({
  cost: addSpans(scaleSpan(size, factor), fixed(BASE)),
  resultSize: size,
})

const estimateSelf =
  (at: number, factor: number) =>
  (args: Arguments): CallEstimate =>
    allocating(factor, multiplySpans(sizeAt(args, at), sizeAt(args, at)))

/** The value of a literal argument, or the worst case for any other argument. */
function literalInt(argument: ArgumentEstimate | undefined, otherwise: bigint): bigint {
  const value = argument?.literal
  if (value === undefined || value === null || !isInt(value)) return otherwise
  return value < 0 ? 0n : BigInt(value)
}

function estimateSlice(args: Arguments): CallEstimate {
  const end = literalInt(args[2], sizeAt(args, 0).max)
  return allocating(1, fixed(BigInt.asUintN(64, end - literalInt(args[1], 0n))))
}

const estimateFlatten = (args: Arguments): CallEstimate =>
  allocating(args.length === 1 ? 1 : Number(literalInt(args[1], MAX_UINT64)), sizeAt(args, 0))

const isText = (name: string): boolean => name === 'string' || name === 'bytes'

export const lists: Library = defineLibrary('cel.lib.ext.lists', {
  slice: [member('list_slice', [LIST, INT, INT], LIST, { evaluate: slice, cost: outputCost, estimate: estimateSlice })],
  flatten: [
    member('list_flatten', [listOf(LIST)], LIST, {
      unguarded: true,
      evaluate: (list) =>
        list instanceof ListValue ? flatten(list, 1) : new Failure(`no such overload: ${typeNameOf(list)}.flatten()`),
      cost: (list) => sizeOf(list) + BASE,
      estimate: estimateFlatten,
    }),
    member('list_flatten_int', [listOf(DYN), INT], listOf(DYN), {
      unguarded: true,
      evaluate(list, depth) {
        if (list instanceof ListValue && isInt(depth)) return flatten(list, depth)
        return new Failure(`no such overload: ${typeNameOf(list)}.flatten(${typeNameOf(depth)})`)
      },
      cost: (list, depth) => Math.floor(sizeOf(list) * Number(depth)) + BASE,
      estimate: estimateFlatten,
    }),
  ],
  sort: comparable.map(([name, type]) =>
    member(`list_${name}_sort`, [listOf(type)], listOf(type), {
      evaluate: (list: ListValue) => sortBy(list, list),
      cost: sortCost,
      estimate: estimateSelf(0, isText(name) ? 2.1 : 2),
    }),
  ),
  '@sortByAssociatedKeys': comparable.map(([name, type]) =>
    member(`list_${name}_sortByAssociatedKeys`, [LIST, listOf(type)], LIST, {
      evaluate: sortBy,
      cost: sortByCost,
      estimate: estimateSelf(1, isText(name) ? 2.1 : 2),
    }),
  ),
  'lists.range': [
    free('lists_range', [INT], listOf(INT), {
      evaluate: (count: Int) => new PickedList(Math.max(0, Number(count)), (at) => at),
      cost: outputCost,
      estimate: (args) => allocating(1, fixed(literalInt(args[0], MAX_UINT64))),
    }),
  ],
  reverse: [
    member('list_reverse', [LIST], LIST, {
      evaluate: (list: ListValue) => new PickedList(list.size, (at) => list.at(list.size - 1 - at)),
      cost: outputCost,
      estimate: (args) => allocating(1, sizeAt(args, 0)),
    }),
  ],
  distinct: [
    member('list_distinct', [LIST], LIST, { evaluate: distinct, cost: sortCost, estimate: estimateSelf(0, 2) }),
  ],
})
