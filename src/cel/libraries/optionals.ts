/** The CEL library of optional values: `x.?f`, `optional.of(v)`, `.orValue(v)`. */
import { defineLibrary, free, member, type Library } from '../library.ts'
import { BOOL, DYN, INT, STRING, listOf, mapOf, opaque, optionalOf, parameter } from '../type.ts'
import { Double, Failure, ListValue, MapValue, Optional, Uint, type Result, type Value } from '../value.ts'
import { listValue } from '../values/list.ts'
import { showValue } from '../values/show.ts'
import { Duration, Timestamp } from '../values/time.ts'

const K = parameter('K')
const V = parameter('V')
const OPTIONAL = optionalOf(V)
const LIST = listOf(V)
const MAP = mapOf(K, V)

const NO_VALUE = new Failure('optional.none() dereference')

const some = (value: Value): Optional => new Optional(value)
const valueOf = ({ value }: Optional): Result => (value === undefined ? NO_VALUE : value)

/** Zero, empty, or nothing; values of libraries never are. */
function isZero(value: Value): boolean {
  if (value === null || value === false || value === '' || value === 0) return true
  if (value instanceof ListValue || value instanceof MapValue) return value.size === 0
  if (value instanceof Uint8Array) return value.length === 0
  if (value instanceof Double) return value.value === 0
  if (value instanceof Uint) return value.value === 0n
  if (value instanceof Duration) return value.nanos === 0n
  // Go's zero time, not that of Unix.
  return value instanceof Timestamp && value.seconds === -62_135_596_800 && value.nanos === 0
}

function element(list: ListValue, at: number): Result {
  const value = list.size === 0 ? undefined : list.at(at)
  return value instanceof Failure ? value : value === undefined ? Optional.none : new Optional(value)
}

/** The values of those that have one. */
function unwrapAll(list: ListValue): Result {
  const values: Value[] = []
  for (let at = 0; at < list.size; at++) {
    const item = list.at(at)
    if (!(item instanceof Optional)) return new Failure(`value ${showValue(item as Value)} is not optional`)
    if (item.value !== undefined) values.push(item.value)
  }
  return listValue(values)
}

export const optionals: Library = defineLibrary(
  'cel.lib.optional',
  {
    'optional.of': [free('optional_of', [V], OPTIONAL, { evaluate: some })],
    'optional.ofNonZeroValue': [
      free('optional_ofNonZeroValue', [V], OPTIONAL, {
        evaluate: (value: Value) => (isZero(value) ? Optional.none : some(value)),
      }),
    ],
    'optional.none': [free('optional_none', [], OPTIONAL, { evaluate: () => Optional.none })],
    value: [member('optional_value', [OPTIONAL], V, { evaluate: valueOf })],
    hasValue: [
      member('optional_hasValue', [OPTIONAL], BOOL, { evaluate: ({ value }: Optional) => value !== undefined }),
    ],
    or: [member('optional_or_optional', [OPTIONAL, OPTIONAL], OPTIONAL)],
    orValue: [member('optional_orValue_value', [OPTIONAL, V], V)],
    '_?._': [free('select_optional_field', [DYN, STRING], OPTIONAL)],
    '_[?_]': [
      free('list_optindex_optional_int', [LIST, INT], OPTIONAL),
      free('optional_list_optindex_optional_int', [optionalOf(LIST), INT], OPTIONAL),
      free('map_optindex_optional_value', [MAP, K], OPTIONAL),
      free('optional_map_optindex_optional_value', [optionalOf(MAP), K], OPTIONAL),
    ],
    '_[_]': [
      free('optional_list_index_int', [optionalOf(LIST), INT], OPTIONAL),
      free('optional_map_index_value', [optionalOf(MAP), K], OPTIONAL),
    ],
    last: [member('list_last', [LIST], OPTIONAL, { evaluate: (list: ListValue) => element(list, list.size - 1) })],
    first: [member('list_first', [LIST], OPTIONAL, { evaluate: (list: ListValue) => element(list, 0) })],
    'optional.unwrap': [free('optional_unwrap', [listOf(OPTIONAL)], LIST, { evaluate: unwrapAll })],
    unwrapOpt: [member('optional_unwrapOpt', [listOf(OPTIONAL)], LIST, { evaluate: unwrapAll })],
  },
  { optional_type: opaque('optional_type') },
)
