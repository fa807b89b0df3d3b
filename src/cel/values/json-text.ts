/** Parses times, dates, durations and bytes in JSON strings as upstream's strfmt does. */
import { parseLocalTime } from '#meta/time.ts'

import { Failure, type Result } from '../value.ts'
import { Duration, Timestamp, parseGoDuration, parseTimestamp } from './time.ts'

/** `2024-01-02`, `2024-01-02T03:04:05Z`, and the latter without a zone. Nothing is the first moment of 1970. */
export function timestampOf(text: string): Result {
  if (text === '') return new Timestamp(0, 0)
  if (/^\d{4}-\d\d-\d\d$/.test(text)) {
    const day = parseTimestamp(`${text}T00:00:00Z`)
    return day ?? new Failure(`Invalid date formatted string ${text}: parsing time "${text}": day out of range`)
  }
  return parseTimestamp(text) ?? localTimeOf(text)
}

/** Upstream tries this form last, and so it is the one that it complains by. */
function localTimeOf(text: string): Result {
  try {
    const { seconds, nanos } = parseLocalTime(text)
    return new Timestamp(seconds, nanos)
  } catch (error) {
    return new Failure(`Invalid date-time formatted string ${text}: ${(error as Error).message}`)
  }
}

const units: readonly (readonly [nanos: bigint, names: readonly string[]])[] = [
  [1n, ['ns', 'nano']],
  [1_000n, ['us', '\u00b5s', 'micro']],
  [1_000_000n, ['ms', 'milli']],
  [1_000_000_000n, ['s', 'sec']],
  [60_000_000_000n, ['m', 'min']],
  [3_600_000_000_000n, ['h', 'hr', 'hour']],
  [86_400_000_000_000n, ['d', 'day']],
  [604_800_000_000_000n, ['w', 'wk', 'week']],
]

/** Go's durations, and words: `1d`, `3 weeks`. */
export function durationOf(text: string): Result {
  const plain = parseGoDuration(text)
  if (plain !== undefined) return plain
  let nanos: bigint | undefined
  for (const [, factor = '', word = ''] of text.matchAll(/(\d+)\s*([A-Za-z\u00b5]+)/g)) {
    const unit = units.find(([, names]) => isUnit(word.toLowerCase(), names))
    if (unit !== undefined) nanos = (nanos ?? 0n) + BigInt.asIntN(64, BigInt(factor) * unit[0])
  }
  if (nanos === undefined) return new Failure(`Invalid duration ${text}: unable to parse ${text} as duration`)
  return new Duration(BigInt.asIntN(64, nanos))
}

/** The last name of a unit may be written out further: `minutes`. */
function isUnit(word: string, names: readonly string[]): boolean {
  return names.includes(word) || word.startsWith(names.at(-1) as string)
}

/** The URL alphabet, padded. */
export function bytesOf(text: string): Result {
  const compact = text.replaceAll(/[\r\n]/g, '')
  const bad = /[^A-Za-z0-9_=-]|=(?!=?$)/.exec(compact)
  const at = bad?.index ?? (compact.length % 4 === 0 ? -1 : compact.length)
  if (at >= 0) return new Failure(`Invalid byte formatted string ${text}: illegal base64 data at input byte ${at}`)
  return new Uint8Array(Buffer.from(compact, 'base64url'))
}
