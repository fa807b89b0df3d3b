/**
 * CEL's own operators and functions. Operators that are not simple calls (`&&`, `?:`, `[]`, …) are declared here for the
 * checker and planned by the planner.
 */
import { defineLibrary, free, member, type Library, type Overload } from '../library.ts'
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  NULL,
  STRING,
  TIMESTAMP,
  UINT,
  listOf,
  mapOf,
  parameter,
  typeOf,
  type CelType,
} from '../type.ts'

const A = parameter('A')
const B = parameter('B')
const LIST = listOf(A)
const MAP = mapOf(A, B)

/** In the order of declaration, which is the order in which overloads are tried. */
const ordered: readonly (readonly [string, CelType, CelType])[] = [
  ['bool', BOOL, BOOL],
  ['int64', INT, INT],
  ['int64_double', INT, DOUBLE],
  ['int64_uint64', INT, UINT],
  ['uint64', UINT, UINT],
  ['uint64_double', UINT, DOUBLE],
  ['uint64_int64', UINT, INT],
  ['double', DOUBLE, DOUBLE],
  ['double_int64', DOUBLE, INT],
  ['double_uint64', DOUBLE, UINT],
  ['string', STRING, STRING],
  ['bytes', BYTES, BYTES],
  ['timestamp', TIMESTAMP, TIMESTAMP],
  ['duration', DURATION, DURATION],
]

const orderings = (prefix: string): Overload[] =>
  ordered.map(([name, left, right]) => free(`${prefix}_${name}`, [left, right], BOOL))

const timeGetters = (id: string, withZone: string = `${id}_with_tz`): Overload[] => [
  member(id, [TIMESTAMP], INT),
  member(withZone, [TIMESTAMP, STRING], INT),
]

const logic: Record<string, Overload[]> = {
  '_?_:_': [free('conditional', [BOOL, A, A], A)],
  '_&&_': [free('logical_and', [BOOL, BOOL], BOOL)],
  '_||_': [free('logical_or', [BOOL, BOOL], BOOL)],
  '!_': [free('logical_not', [BOOL], BOOL)],
  '@not_strictly_false': [free('not_strictly_false', [BOOL], BOOL)],
  '_==_': [free('equals', [A, A], BOOL)],
  '_!=_': [free('not_equals', [A, A], BOOL)],
}

const arithmetic: Record<string, Overload[]> = {
  '_+_': [
    free('add_bytes', [BYTES, BYTES], BYTES),
    free('add_double', [DOUBLE, DOUBLE], DOUBLE),
    free('add_duration_duration', [DURATION, DURATION], DURATION),
    free('add_duration_timestamp', [DURATION, TIMESTAMP], TIMESTAMP),
    free('add_timestamp_duration', [TIMESTAMP, DURATION], TIMESTAMP),
    free('add_int64', [INT, INT], INT),
    free('add_list', [LIST, LIST], LIST),
    free('add_string', [STRING, STRING], STRING),
    free('add_uint64', [UINT, UINT], UINT),
  ],
  '_/_': [
    free('divide_double', [DOUBLE, DOUBLE], DOUBLE),
    free('divide_int64', [INT, INT], INT),
    free('divide_uint64', [UINT, UINT], UINT),
  ],
  '_%_': [free('modulo_int64', [INT, INT], INT), free('modulo_uint64', [UINT, UINT], UINT)],
  '_*_': [
    free('multiply_double', [DOUBLE, DOUBLE], DOUBLE),
    free('multiply_int64', [INT, INT], INT),
    free('multiply_uint64', [UINT, UINT], UINT),
  ],
  '-_': [free('negate_double', [DOUBLE], DOUBLE), free('negate_int64', [INT], INT)],
  '_-_': [
    free('subtract_double', [DOUBLE, DOUBLE], DOUBLE),
    free('subtract_duration_duration', [DURATION, DURATION], DURATION),
    free('subtract_int64', [INT, INT], INT),
    free('subtract_timestamp_duration', [TIMESTAMP, DURATION], TIMESTAMP),
    free('subtract_timestamp_timestamp', [TIMESTAMP, TIMESTAMP], DURATION),
    free('subtract_uint64', [UINT, UINT], UINT),
  ],
}

const collections: Record<string, Overload[]> = {
  '_[_]': [free('index_list', [LIST, INT], A), free('index_map', [MAP, A], B)],
  '@in': [free('in_list', [A, LIST], BOOL), free('in_map', [A, MAP], BOOL)],
  size: [
    free('size_bytes', [BYTES], INT),
    member('bytes_size', [BYTES], INT),
    free('size_list', [LIST], INT),
    member('list_size', [LIST], INT),
    free('size_map', [MAP], INT),
    member('map_size', [MAP], INT),
    free('size_string', [STRING], INT),
    member('string_size', [STRING], INT),
  ],
}

const conversions: Record<string, Overload[]> = {
  type: [free('type', [A], typeOf(A))],
  bool: [free('bool_to_bool', [BOOL], BOOL), free('string_to_bool', [STRING], BOOL)],
  bytes: [free('bytes_to_bytes', [BYTES], BYTES), free('string_to_bytes', [STRING], BYTES)],
  double: [
    free('double_to_double', [DOUBLE], DOUBLE),
    free('int64_to_double', [INT], DOUBLE),
    free('string_to_double', [STRING], DOUBLE),
    free('uint64_to_double', [UINT], DOUBLE),
  ],
  duration: [
    free('duration_to_duration', [DURATION], DURATION),
    free('int64_to_duration', [INT], DURATION),
    free('string_to_duration', [STRING], DURATION),
  ],
  dyn: [free('to_dyn', [A], DYN)],
  int: [
    free('int64_to_int64', [INT], INT),
    free('double_to_int64', [DOUBLE], INT),
    free('duration_to_int64', [DURATION], INT),
    free('string_to_int64', [STRING], INT),
    free('timestamp_to_int64', [TIMESTAMP], INT),
    free('uint64_to_int64', [UINT], INT),
  ],
  string: [
    free('string_to_string', [STRING], STRING),
    free('bool_to_string', [BOOL], STRING),
    free('bytes_to_string', [BYTES], STRING),
    free('double_to_string', [DOUBLE], STRING),
    free('duration_to_string', [DURATION], STRING),
    free('int64_to_string', [INT], STRING),
    free('timestamp_to_string', [TIMESTAMP], STRING),
    free('uint64_to_string', [UINT], STRING),
  ],
  timestamp: [
    free('timestamp_to_timestamp', [TIMESTAMP], TIMESTAMP),
    free('int64_to_timestamp', [INT], TIMESTAMP),
    free('string_to_timestamp', [STRING], TIMESTAMP),
  ],
  uint: [
    free('uint64_to_uint64', [UINT], UINT),
    free('double_to_uint64', [DOUBLE], UINT),
    free('int64_to_uint64', [INT], UINT),
    free('string_to_uint64', [STRING], UINT),
  ],
}

const strings: Record<string, Overload[]> = {
  contains: [member('contains_string', [STRING, STRING], BOOL)],
  endsWith: [member('ends_with_string', [STRING, STRING], BOOL)],
  startsWith: [member('starts_with_string', [STRING, STRING], BOOL)],
  matches: [free('matches', [STRING, STRING], BOOL), member('matches_string', [STRING, STRING], BOOL)],
}

const times: Record<string, Overload[]> = {
  getFullYear: timeGetters('timestamp_to_year'),
  getMonth: timeGetters('timestamp_to_month'),
  getDayOfYear: timeGetters('timestamp_to_day_of_year'),
  getDayOfMonth: timeGetters('timestamp_to_day_of_month'),
  getDate: timeGetters('timestamp_to_day_of_month_1_based'),
  getDayOfWeek: timeGetters('timestamp_to_day_of_week'),
  getHours: [...timeGetters('timestamp_to_hours'), member('duration_to_hours', [DURATION], INT)],
  getMinutes: [...timeGetters('timestamp_to_minutes'), member('duration_to_minutes', [DURATION], INT)],
  getSeconds: [
    ...timeGetters('timestamp_to_seconds', 'timestamp_to_seconds_tz'),
    member('duration_to_seconds', [DURATION], INT),
  ],
  getMilliseconds: [...timeGetters('timestamp_to_milliseconds'), member('duration_to_milliseconds', [DURATION], INT)],
}

export const standard: Library = defineLibrary(
  'stdlib',
  {
    ...logic,
    ...arithmetic,
    '_<_': orderings('less'),
    '_<=_': orderings('less_equals'),
    '_>_': orderings('greater'),
    '_>=_': orderings('greater_equals'),
    ...collections,
    ...conversions,
    ...strings,
    ...times,
  },
  {
    bool: BOOL,
    bytes: BYTES,
    double: DOUBLE,
    'google.protobuf.Duration': DURATION,
    int: INT,
    list: LIST,
    map: MAP,
    null_type: NULL,
    string: STRING,
    'google.protobuf.Timestamp': TIMESTAMP,
    type: typeOf(),
    uint: UINT,
  },
)
