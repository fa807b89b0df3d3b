/** Encodes types that are one value in JSON and a small message in protobuf, such as times and quantities. */

import { durationText } from '#lib/go/duration.ts'
import { parseJson } from '#lib/json/json.ts'

import { canonicalQuantity } from '../quantity.ts'
import type { ScalarType } from '../schema.ts'
import { type Instant, isZeroTime, microTimeText, timeText } from '../time.ts'
import { CodecError } from './error.ts'

export type PlainType = Extract<ScalarType, 'string' | 'bytes' | 'boolean' | 'int32' | 'int64' | 'float64'>
export type SmallMessageType = Exclude<ScalarType, PlainType> | 'any'

interface SmallMessage {
  readonly goName: string
  readonly fields: readonly (readonly [goName: string, type: PlainType])[]
  /** The canonical value. Throws an Error with upstream's text for an invalid one. */
  readonly build: (values: readonly unknown[]) => unknown
}

/** Throws CodecError with upstream's text for invalid scalars. */
export function buildSmallMessage(type: SmallMessageType, values: readonly unknown[]): unknown {
  try {
    return smallMessages[type].build(values)
  } catch (cause) {
    throw new CodecError('type', (cause as Error).message, { cause })
  }
}

export const smallMessages: Readonly<Record<SmallMessageType, SmallMessage>> = {
  quantity: {
    goName: 'Quantity',
    fields: [['String', 'string']],
    build: ([text]) => (text === undefined ? '0' : canonicalQuantity(text as string)),
  },
  time: {
    goName: 'Timestamp',
    fields: [
      ['Seconds', 'int64'],
      ['Nanos', 'int32'],
    ],
    build: (values) => textOf(values, timeText, 0),
  },
  microtime: {
    goName: 'Timestamp',
    fields: [
      ['Seconds', 'int64'],
      ['Nanos', 'int32'],
    ],
    build: (values) => textOf(values, microTimeText, values[1] as number | undefined),
  },
  duration: {
    goName: 'Duration',
    fields: [['Duration', 'int64']],
    build: ([nanos]) => durationText(BigInt((nanos ?? 0) as number | bigint)),
  },
  'int-or-string': {
    goName: 'IntOrString',
    fields: [
      ['Type', 'int64'],
      ['IntVal', 'int32'],
      ['StrVal', 'string'],
    ],
    build: ([type, number, text]) => (type === 1 ? (text ?? '') : (number ?? 0)),
  },
  any: {
    goName: 'RawExtension',
    fields: [['Raw', 'string']],
    build: ([text]) => (text === undefined || text === '' ? null : parseJson(text as string, { exactNumbers: true })),
  },
}

/** The last second of the year 9999 and the first of the year 0, the limits of the text form. */
const LAST_SECOND = 253_402_300_799
const FIRST_SECOND = -62_167_219_200

/** An empty message is the zero time. */
function textOf(values: readonly unknown[], format: (instant: Instant) => string, nanos = 0): string | null {
  if (values.length === 0) return null
  const seconds = Number(values[0] ?? 0)
  // Truncates towards zero like Go's durations, before a negative rest is borrowed from the seconds.
  const rest = Math.trunc(nanos / 1000) * 1000
  const whole = seconds + Math.floor(rest / 1e9)
  if (whole < FIRST_SECOND || whole > LAST_SECOND) throw new Error(`Time of ${seconds} seconds is out of range`)
  const instant = { seconds: whole, nanos: rest - Math.floor(rest / 1e9) * 1e9 }
  return isZeroTime(instant) ? null : format(instant)
}
