/**
 * CEL's own operators and functions. Operators that are not simple calls (`&&`, `?:`, `[]`, …) are declared here for the
 * checker and planned by the planner.
 */
import { estimatePattern, estimateShorter, matchPattern, ONE, readFirst, readShorter, sizeAt } from '../cost/costs.ts'
import { addSpans, multiplySpans, scaleSpan } from '../cost/span.ts'
import {
  defineLibrary,
  free,
  member,
  type ArgumentEstimate,
  type CallEstimate,
  type Library,
  type Overload,
} from '../library.ts'
import { typeOfValue } from '../planner/type-value.ts'
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
import type { Uint } from '../value.ts'
import { Double, Failure, ListValue, MapValue, NO_SUCH_OVERLOAD, intOf, type Result, type Value } from '../value.ts'
import { add, divide, modulo, multiply, negate, subtract } from '../values/arithmetic.ts'
import { absence, ordering } from '../values/compare.ts'
import {
  bytesToString,
  doubleToInt,
  doubleToUint,
  intToDuration,
  intToUint,
  stringToBool,
  stringToBytes,
  stringToDouble,
  stringToDuration,
  stringToInt,
  stringToTimestamp,
  stringToUint,
  toText,
  uintToInt,
} from '../values/conversion.ts'
import { equal } from '../values/equality.ts'
import { searcher } from '../values/pattern.ts'
import { sizeOf, tenth } from '../values/size.ts'
import { textSize } from '../values/text.ts'
import { inZone, timestampOfSeconds, type Duration, type Timestamp } from '../values/time.ts'

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

function orderings(operator: string, prefix: string, holds: (order: number) => boolean): Overload[] {
  const evaluate = ordering(operator, holds)
  return ordered.map(([name, left, right]) => {
    const bySize = name === 'string' || name === 'bytes' ? { cost: readShorter, estimate: estimateShorter } : {}
    return free(`${prefix}_${name}`, [left, right], BOOL, { evaluate, unguarded: true, ...bySize })
  })
}

/** One function for all overloads, which finds out by itself what it was given. */
const one = (evaluate: NonNullable<Overload['evaluate']>): Pick<Overload, 'evaluate' | 'unguarded'> => ({
  evaluate,
  unguarded: true,
})

const adding = one(add)
const subtracting = one(subtract)
const multiplying = one(multiply)
const dividing = one(divide)
const dividingRest = one(modulo)
const negating = one(negate)
const searching = one(isIn)
const measuring = one(measure)
const kept = { evaluate: (value: Value): Result => value }

const withoutSize = absence('size')
const withoutMatch = absence('matches')

function measure(value: Value): Result {
  if (typeof value === 'string') return textSize(value)
  return value instanceof ListValue || value instanceof MapValue || value instanceof Uint8Array
    ? sizeOf(value)
    : withoutSize(value)
}

function isIn(value: Value, container: Value): Result {
  if (container instanceof MapValue) return isKeyOf(value, container)
  if (!(container instanceof ListValue)) return NO_SUCH_OVERLOAD
  let failure: Failure | undefined
  for (let at = 0; at < container.size; at++) {
    const same = equal(value, container.at(at))
    if (same === true) return true
    if (same !== false) failure ??= same
  }
  return container.isTyped && failure !== undefined ? failure : false
}

function isKeyOf(key: Value, map: MapValue): Result {
  const found = map.get(key)
  return found instanceof Failure ? found : found !== undefined
}

const onStrings = (test: (text: string, part: string) => boolean): Pick<Overload, 'evaluate' | 'unguarded'> =>
  one((text, part) => (typeof text === 'string' && typeof part === 'string' ? test(text, part) : NO_SUCH_OVERLOAD))

function matches(text: Value, pattern: Value): Result {
  if (typeof text !== 'string') return withoutMatch(text)
  if (typeof pattern !== 'string') return NO_SUCH_OVERLOAD
  const regexp = searcher(pattern, text)
  return regexp instanceof Failure ? regexp : regexp.test(text)
}

const matching = one(matches)

type Getter = (date: Date, timestamp: Timestamp) => number

const timeGetters = (id: string, get: Getter, withZone: string = `${id}_with_tz`): Overload[] => [
  member(id, [TIMESTAMP], INT, {
    evaluate: (timestamp: Timestamp) => get(new Date(timestamp.seconds * 1000), timestamp),
  }),
  member(withZone, [TIMESTAMP, STRING], INT, {
    evaluate(timestamp: Timestamp, zone: string) {
      const date = inZone(timestamp, zone)
      return date instanceof Failure ? date : get(date, timestamp)
    },
  }),
]

const durationGetter = (id: string, unit: bigint): Overload =>
  member(id, [DURATION], INT, { evaluate: ({ nanos }: Duration) => intOf(nanos / unit) })

const dayOfYear: Getter = (date) =>
  Math.floor((date.getTime() - new Date(0).setUTCFullYear(date.getUTCFullYear(), 0, 1)) / 86_400_000)

const ADDING_TEXT = {
  ...adding,
  cost: (a: Result, b: Result): number => tenth(sizeOf(a) + sizeOf(b)),
  estimate(args: readonly ArgumentEstimate[]): CallEstimate {
    const resultSize = addSpans(sizeAt(args, 0), sizeAt(args, 1))
    return { cost: scaleSpan(resultSize, 0.1), resultSize }
  },
}

const estimateJoinedLists = (args: readonly ArgumentEstimate[]): CallEstimate => ({
  cost: ONE,
  resultSize: addSpans(sizeAt(args, 0), sizeAt(args, 1)),
})

/** Every code point has four bytes at most. */
function estimateToBytes(args: readonly ArgumentEstimate[]): CallEstimate {
  const size = sizeAt(args, 0)
  return { cost: scaleSpan(size, 0.1), resultSize: { min: size.min, max: BigInt.asUintN(64, size.max * 4n) } }
}

function estimateToText(args: readonly ArgumentEstimate[]): CallEstimate {
  const size = sizeAt(args, 0)
  return { cost: scaleSpan(size, 0.1), resultSize: { min: size.min / 4n, max: size.max } }
}

const estimatePart = (args: readonly ArgumentEstimate[]): CallEstimate => ({ cost: scaleSpan(sizeAt(args, 1), 0.1) })

/** The types of libraries that cost 1 to compare. */
const comparedAtOnce: ReadonlySet<string> = new Set(
  `net.IP net.CIDR kubernetes.Quantity kubernetes.Semver kubernetes.authorization.Authorizer
   kubernetes.authorization.PathCheck kubernetes.authorization.GroupCheck kubernetes.authorization.ResourceCheck
   kubernetes.authorization.Decision`.split(/\s+/),
)
/** The longest name of a format. */
const MAX_FORMAT_SIZE = 64n

function estimateEquality(args: readonly ArgumentEstimate[]): CallEstimate {
  const [a, b] = args.map(({ type }) => (type.kind === 'opaque' || type.kind === 'object' ? type.name : undefined))
  if (a === undefined || a !== b) return estimateShorter(args)
  if (comparedAtOnce.has(a)) return { cost: ONE }
  if (a === 'kubernetes.NamedFormat') return { cost: scaleSpan({ min: 1n, max: MAX_FORMAT_SIZE }, 0.1) }
  if (a === 'kubernetes.URL') return { cost: scaleSpan({ min: 1n, max: args[1]?.size?.max ?? 1n }, 0.1) }
  return estimateShorter(args)
}

const logic: Record<string, Overload[]> = {
  '_?_:_': [free('conditional', [BOOL, A, A], A)],
  '_&&_': [free('logical_and', [BOOL, BOOL], BOOL)],
  '_||_': [free('logical_or', [BOOL, BOOL], BOOL)],
  '!_': [
    free(
      'logical_not',
      [BOOL],
      BOOL,
      one((value) => (typeof value === 'boolean' ? !value : NO_SUCH_OVERLOAD)),
    ),
  ],
  '@not_strictly_false': [free('not_strictly_false', [BOOL], BOOL)],
  '_==_': [free('equals', [A, A], BOOL, { estimate: estimateEquality })],
  '_!=_': [free('not_equals', [A, A], BOOL, { estimate: estimateShorter })],
}

const arithmetic: Record<string, Overload[]> = {
  '_+_': [
    free('add_bytes', [BYTES, BYTES], BYTES, ADDING_TEXT),
    free('add_double', [DOUBLE, DOUBLE], DOUBLE, adding),
    free('add_duration_duration', [DURATION, DURATION], DURATION, adding),
    free('add_duration_timestamp', [DURATION, TIMESTAMP], TIMESTAMP, adding),
    free('add_timestamp_duration', [TIMESTAMP, DURATION], TIMESTAMP, adding),
    free('add_int64', [INT, INT], INT, adding),
    free('add_list', [LIST, LIST], LIST, { ...adding, estimate: estimateJoinedLists }),
    free('add_string', [STRING, STRING], STRING, ADDING_TEXT),
    free('add_uint64', [UINT, UINT], UINT, adding),
  ],
  '_/_': [
    free('divide_double', [DOUBLE, DOUBLE], DOUBLE, dividing),
    free('divide_int64', [INT, INT], INT, dividing),
    free('divide_uint64', [UINT, UINT], UINT, dividing),
  ],
  '_%_': [free('modulo_int64', [INT, INT], INT, dividingRest), free('modulo_uint64', [UINT, UINT], UINT, dividingRest)],
  '_*_': [
    free('multiply_double', [DOUBLE, DOUBLE], DOUBLE, multiplying),
    free('multiply_int64', [INT, INT], INT, multiplying),
    free('multiply_uint64', [UINT, UINT], UINT, multiplying),
  ],
  '-_': [free('negate_double', [DOUBLE], DOUBLE, negating), free('negate_int64', [INT], INT, negating)],
  '_-_': [
    free('subtract_double', [DOUBLE, DOUBLE], DOUBLE, subtracting),
    free('subtract_duration_duration', [DURATION, DURATION], DURATION, subtracting),
    free('subtract_int64', [INT, INT], INT, subtracting),
    free('subtract_timestamp_duration', [TIMESTAMP, DURATION], TIMESTAMP, subtracting),
    free('subtract_timestamp_timestamp', [TIMESTAMP, TIMESTAMP], DURATION, subtracting),
    free('subtract_uint64', [UINT, UINT], UINT, subtracting),
  ],
}

const collections: Record<string, Overload[]> = {
  '_[_]': [free('index_list', [LIST, INT], A), free('index_map', [MAP, A], B)],
  '@in': [
    free('in_list', [A, LIST], BOOL, {
      ...searching,
      cost: (_value, list) => sizeOf(list),
      estimate: (args) => ({ cost: sizeAt(args, 1) }),
    }),
    free('in_map', [A, MAP], BOOL, searching),
  ],
  size: [
    free('size_bytes', [BYTES], INT, measuring),
    member('bytes_size', [BYTES], INT, measuring),
    free('size_list', [LIST], INT, measuring),
    member('list_size', [LIST], INT, measuring),
    free('size_map', [MAP], INT, measuring),
    member('map_size', [MAP], INT, measuring),
    free('size_string', [STRING], INT, measuring),
    member('string_size', [STRING], INT, measuring),
  ],
}

const conversions: Record<string, Overload[]> = {
  type: [free('type', [A], typeOf(A), one(typeOfValue))],
  bool: [free('bool_to_bool', [BOOL], BOOL, kept), free('string_to_bool', [STRING], BOOL, { evaluate: stringToBool })],
  bytes: [
    free('bytes_to_bytes', [BYTES], BYTES, kept),
    free('string_to_bytes', [STRING], BYTES, { evaluate: stringToBytes, cost: readFirst, estimate: estimateToBytes }),
  ],
  double: [
    free('double_to_double', [DOUBLE], DOUBLE, kept),
    free('int64_to_double', [INT], DOUBLE, { evaluate: (value: number | bigint) => new Double(Number(value)) }),
    free('string_to_double', [STRING], DOUBLE, { evaluate: stringToDouble }),
    free('uint64_to_double', [UINT], DOUBLE, { evaluate: ({ value }: Uint) => new Double(Number(value)) }),
  ],
  duration: [
    free('duration_to_duration', [DURATION], DURATION, kept),
    free('int64_to_duration', [INT], DURATION, { evaluate: intToDuration }),
    free('string_to_duration', [STRING], DURATION, { evaluate: stringToDuration }),
  ],
  dyn: [free('to_dyn', [A], DYN, { ...kept, unguarded: true })],
  int: [
    free('int64_to_int64', [INT], INT, kept),
    free('double_to_int64', [DOUBLE], INT, { evaluate: doubleToInt }),
    free('duration_to_int64', [DURATION], INT, { evaluate: ({ nanos }: Duration) => intOf(nanos) }),
    free('string_to_int64', [STRING], INT, { evaluate: stringToInt }),
    free('timestamp_to_int64', [TIMESTAMP], INT, { evaluate: ({ seconds }: Timestamp) => seconds }),
    free('uint64_to_int64', [UINT], INT, { evaluate: uintToInt }),
  ],
  string: [
    free('string_to_string', [STRING], STRING, kept),
    free('bool_to_string', [BOOL], STRING, { evaluate: toText }),
    free('bytes_to_string', [BYTES], STRING, { evaluate: bytesToString, cost: readFirst, estimate: estimateToText }),
    free('double_to_string', [DOUBLE], STRING, { evaluate: toText }),
    free('duration_to_string', [DURATION], STRING, { evaluate: toText }),
    free('int64_to_string', [INT], STRING, { evaluate: toText }),
    free('timestamp_to_string', [TIMESTAMP], STRING, { evaluate: toText }),
    free('uint64_to_string', [UINT], STRING, { evaluate: toText }),
  ],
  timestamp: [
    free('timestamp_to_timestamp', [TIMESTAMP], TIMESTAMP, kept),
    free('int64_to_timestamp', [INT], TIMESTAMP, { evaluate: timestampOfSeconds }),
    free('string_to_timestamp', [STRING], TIMESTAMP, { evaluate: stringToTimestamp }),
  ],
  uint: [
    free('uint64_to_uint64', [UINT], UINT, kept),
    free('double_to_uint64', [DOUBLE], UINT, { evaluate: doubleToUint }),
    free('int64_to_uint64', [INT], UINT, { evaluate: intToUint }),
    free('string_to_uint64', [STRING], UINT, { evaluate: stringToUint }),
  ],
}

const strings: Record<string, Overload[]> = {
  contains: [
    member('contains_string', [STRING, STRING], BOOL, {
      ...onStrings((text, part) => text.includes(part)),
      cost: (a, b) => tenth(sizeOf(a)) * tenth(sizeOf(b)),
      estimate: (args) => ({ cost: multiplySpans(scaleSpan(sizeAt(args, 0), 0.1), scaleSpan(sizeAt(args, 1), 0.1)) }),
    }),
  ],
  endsWith: [
    member('ends_with_string', [STRING, STRING], BOOL, {
      ...onStrings((text, part) => text.endsWith(part)),
      cost: readFirst,
      estimate: estimatePart,
    }),
  ],
  startsWith: [
    member('starts_with_string', [STRING, STRING], BOOL, {
      ...onStrings((text, part) => text.startsWith(part)),
      cost: readFirst,
      estimate: estimatePart,
    }),
  ],
  matches: [
    free('matches', [STRING, STRING], BOOL, matching),
    member('matches_string', [STRING, STRING], BOOL, { ...matching, cost: matchPattern, estimate: estimatePattern }),
  ],
}

const times: Record<string, Overload[]> = {
  getFullYear: timeGetters('timestamp_to_year', (date) => date.getUTCFullYear()),
  getMonth: timeGetters('timestamp_to_month', (date) => date.getUTCMonth()),
  getDayOfYear: timeGetters('timestamp_to_day_of_year', dayOfYear),
  getDayOfMonth: timeGetters('timestamp_to_day_of_month', (date) => date.getUTCDate() - 1),
  getDate: timeGetters('timestamp_to_day_of_month_1_based', (date) => date.getUTCDate()),
  getDayOfWeek: timeGetters('timestamp_to_day_of_week', (date) => date.getUTCDay()),
  getHours: [
    ...timeGetters('timestamp_to_hours', (date) => date.getUTCHours()),
    durationGetter('duration_to_hours', 3_600_000_000_000n),
  ],
  getMinutes: [
    ...timeGetters('timestamp_to_minutes', (date) => date.getUTCMinutes()),
    durationGetter('duration_to_minutes', 60_000_000_000n),
  ],
  getSeconds: [
    ...timeGetters('timestamp_to_seconds', (date) => date.getUTCSeconds(), 'timestamp_to_seconds_tz'),
    durationGetter('duration_to_seconds', 1_000_000_000n),
  ],
  getMilliseconds: [
    ...timeGetters('timestamp_to_milliseconds', (_date, { nanos }) => Math.floor(nanos / 1_000_000)),
    durationGetter('duration_to_milliseconds', 1_000_000n),
  ],
}

export const standard: Library = defineLibrary(
  'stdlib',
  {
    ...logic,
    ...arithmetic,
    '_<_': orderings('_<_', 'less', (order) => order < 0),
    '_<=_': orderings('_<=_', 'less_equals', (order) => order <= 0),
    '_>_': orderings('_>_', 'greater', (order) => order > 0),
    '_>=_': orderings('_>=_', 'greater_equals', (order) => order >= 0),
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
