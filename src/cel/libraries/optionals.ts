/** Values that may be absent: `x.?f`, `optional.of(v)`, `.orValue(v)`. */
import { defineLibrary, free, member, type Library } from '../library.ts'
import { BOOL, DYN, INT, STRING, listOf, mapOf, optionalOf, parameter } from '../type.ts'

const K = parameter('K')
const V = parameter('V')
const OPTIONAL = optionalOf(V)
const LIST = listOf(V)
const MAP = mapOf(K, V)

export const optionals: Library = defineLibrary(
  'cel.lib.optional',
  {
    'optional.of': [free('optional_of', [V], OPTIONAL)],
    'optional.ofNonZeroValue': [free('optional_ofNonZeroValue', [V], OPTIONAL)],
    'optional.none': [free('optional_none', [], OPTIONAL)],
    value: [member('optional_value', [OPTIONAL], V)],
    hasValue: [member('optional_hasValue', [OPTIONAL], BOOL)],
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
    last: [member('list_last', [LIST], OPTIONAL)],
    first: [member('list_first', [LIST], OPTIONAL)],
    'optional.unwrap': [free('optional_unwrap', [listOf(OPTIONAL)], LIST)],
    unwrapOpt: [member('optional_unwrapOpt', [listOf(OPTIONAL)], LIST)],
  },
  { optional_type: OPTIONAL },
)
