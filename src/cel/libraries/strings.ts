/** The CEL library of string functions, version 2 of cel-go's. Positions count code points. */
import {
  estimateReadKept,
  estimateTraversal,
  readAndWriteFirst,
  readFirst,
  sizeAt,
  traverseFirst,
} from '../cost/costs.ts'
import { addSpans, MAX_UINT64, multiplySpans, scaleSpan } from '../cost/span.ts'
import { spendEffort } from '../effort.ts'
import { defineLibrary, free, member, type ArgumentEstimate, type CallEstimate, type Library } from '../library.ts'
import { DYN, INT, STRING, listOf } from '../type.ts'
import { Failure, isInt, type ListValue, type Result } from '../value.ts'
import { formatText } from '../values/format.ts'
import { listValue } from '../values/list.ts'
import { showValue } from '../values/show.ts'
import { sizeOf, tenth } from '../values/size.ts'
import { codePointOffset, codePoints, textSize, unitOffset } from '../values/text.ts'

type Int = number | bigint

const outOfRange = (index: Int): Failure => new Failure(`index out of range: ${index}`)

function charAt(text: string, index: Int): Result {
  const size = textSize(text)
  if (index < 0 || index > size) return outOfRange(index)
  return Number(index) === size ? '' : String.fromCodePoint(text.codePointAt(unitOffset(text, Number(index))) as number)
}

function indexFrom(text: string, part: string, start: Int): Result {
  if (part === '') return start
  if (start < 0) return outOfRange(start)
  if (start >= textSize(text)) return -1
  return codePointOffset(text, text.indexOf(part, unitOffset(text, Number(start))))
}

function lastIndex(text: string, part: string): Result {
  return part === '' ? textSize(text) : codePointOffset(text, text.lastIndexOf(part))
}

function lastIndexFrom(text: string, part: string, start: Int): Result {
  if (part === '') return start
  if (start < 0) return outOfRange(start)
  if (start >= textSize(text)) return -1
  return codePointOffset(text, text.lastIndexOf(part, unitOffset(text, Number(start))))
}

const ascii = (text: string, pattern: RegExp, change: (letters: string) => string): string =>
  text.replaceAll(pattern, change)

/** `limit` replacements at most; all when that is negative. */
function replace(text: string, old: string, next: string, limit: Int): Result {
  if (limit === 0 || old === next) return text
  const pieces = old === '' ? ['', ...codePoints(text)] : text.split(old)
  const gaps = old === '' ? pieces.length : pieces.length - 1
  const count = limit < 0 ? gaps : Math.min(gaps, Number(limit))
  spendEffort(text.length + count * next.length)
  if (old === '') return pieces.map((piece, at) => (at < count ? piece + next : piece)).join('')
  return [pieces.slice(0, count + 1).join(next), ...pieces.slice(count + 1)].join(old)
}

/** `limit` parts at most, the last with all that is left; any number when that is negative. */
function split(text: string, separator: string, limit: Int): Result {
  if (limit === 0) return listValue([])
  const parts = separator === '' ? codePoints(text) : text.split(separator)
  if (limit < 0 || parts.length <= limit) return listValue(parts)
  const last = Number(limit) - 1
  return listValue([...parts.slice(0, last), parts.slice(last).join(separator)])
}

function substring(text: string, start: Int, end: Int): Result {
  const size = textSize(text)
  if (start > end) return new Failure(`invalid substring range. start: ${start}, end: ${end}`)
  if (start < 0 || start > size) return outOfRange(start)
  if (end < 0 || end > size) return outOfRange(end)
  return text.slice(unitOffset(text, Number(start)), unitOffset(text, Number(end)))
}

function substringFrom(text: string, start: Int): Result {
  const size = textSize(text)
  return start < 0 || start > size ? outOfRange(start) : text.slice(unitOffset(text, Number(start)))
}

/** Unicode's spaces, as Go knows them. */
const SPACE = '[\\t\\n\\v\\f\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]'
const LEADING = new RegExp(`^${SPACE}+`)
const isSpace = new RegExp(`^${SPACE}$`)

function trim(text: string): string {
  let end = text.length
  while (end > 0 && isSpace.test(text.charAt(end - 1))) end--
  return text.slice(0, end).replace(LEADING, '')
}

const escapes: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
}

// oxlint-disable-next-line no-control-regex -- these are what is quoted
const QUOTED = /[\u0007\b\f\n\r\t\v\\"]/g

const quote = (text: string): string => `"${text.replaceAll(QUOTED, (char) => escapes[char] as string)}"`

function join(list: ListValue, separator: string): Result {
  const parts: string[] = []
  for (let at = 0; at < list.size; at++) {
    const part = list.at(at)
    if (part instanceof Failure) return part
    if (typeof part !== 'string') return new Failure(`join: invalid input: ${showValue(part)}`)
    spendEffort(part.length + separator.length)
    parts.push(part)
  }
  return parts.join(separator)
}

type Arguments = readonly ArgumentEstimate[]

/** The longest result and the shortest, by how often there is something to replace. */
function estimateReplace(args: Arguments): CallEstimate {
  const [text, old, next] = [sizeAt(args, 0), sizeAt(args, 1), sizeAt(args, 2)]
  const oneMore = (size: bigint): bigint => (size < MAX_UINT64 ? size + 1n : size)
  const ratio = (size: bigint, by: bigint): bigint => BigInt(Math.ceil(Number(size) / Number(by)))
  const count = { min: 0n, max: 0n }
  const kept = { min: 0n, max: 0n }
  if (old.min === 0n) [count.max, kept.max] = [oneMore(text.max), text.max]
  else if (next.max <= old.min) kept.max = text.max
  else count.max = ratio(text.max, old.min)
  if (old.max === 0n) [count.min, kept.min] = [oneMore(text.min), text.min]
  else if (old.max <= next.min) kept.min = text.min
  else count.min = ratio(text.min, old.max)
  return { cost: scaleSpan(text, 0.2), resultSize: addSpans(multiplySpans(count, next), kept) }
}

/** At worst every character is a separate part. */
function estimateSplit(args: Arguments): CallEstimate {
  const text = sizeAt(args, 0)
  const limit = args[2]?.literal
  const max = limit !== undefined && limit !== null && isInt(limit) ? BigInt.asUintN(64, BigInt(limit)) : text.max
  return { cost: scaleSpan(text, 0.2), resultSize: { min: 0n, max } }
}

function estimateJoin(args: Arguments): CallEstimate {
  const list = sizeAt(args, 0)
  const [target] = args
  const isList = target?.type.kind === 'list'
  const texts = isList ? multiplySpans(list, target.elementSize ?? { min: 0n, max: MAX_UINT64 }) : { min: 0n, max: 0n }
  const less = (size: bigint): bigint => (size > 0n ? size - 1n : 0n)
  const separators =
    args.length > 1
      ? multiplySpans(sizeAt(args, 1), { min: less(list.min), max: less(list.max) })
      : { min: 0n, max: 0n }
  const resultSize = addSpans(texts, separators)
  return { cost: scaleSpan(resultSize, 0.1), resultSize }
}

function estimateQuote(args: Arguments): CallEstimate {
  const { min, max } = sizeAt(args, 0)
  const wrap = (size: bigint): bigint => BigInt.asUintN(64, size)
  return { cost: scaleSpan({ min, max }, 0.1), resultSize: { min: wrap(min + 2n), max: wrap(max * 2n + 2n) } }
}

const kept = { cost: readFirst, dynamicCost: readFirst, estimate: estimateReadKept }
const searching = { cost: traverseFirst, dynamicCost: traverseFirst, estimate: estimateTraversal }
const rewriting = { cost: readAndWriteFirst, dynamicCost: readAndWriteFirst }
const joinCost = (_list: Result, _separator: Result, result: Result): number => tenth(2 * sizeOf(result))
const joining = { cost: joinCost, dynamicCost: joinCost, estimate: estimateJoin }

export const strings: Library = defineLibrary('cel.lib.ext.strings', {
  charAt: [member('string_char_at_int', [STRING, INT], STRING, { evaluate: charAt })],
  indexOf: [
    member('string_index_of_string', [STRING, STRING], INT, {
      ...searching,
      evaluate: (text: string, part: string) => indexFrom(text, part, 0),
    }),
    member('string_index_of_string_int', [STRING, STRING, INT], INT, { ...searching, evaluate: indexFrom }),
  ],
  lastIndexOf: [
    member('string_last_index_of_string', [STRING, STRING], INT, { ...searching, evaluate: lastIndex }),
    member('string_last_index_of_string_int', [STRING, STRING, INT], INT, { ...searching, evaluate: lastIndexFrom }),
  ],
  lowerAscii: [
    member('string_lower_ascii', [STRING], STRING, {
      ...kept,
      evaluate: (text: string) => ascii(text, /[A-Z]+/g, (letters) => letters.toLowerCase()),
    }),
  ],
  replace: [
    member('string_replace_string_string', [STRING, STRING, STRING], STRING, {
      ...rewriting,
      estimate: estimateReplace,
      evaluate: (text: string, old: string, next: string) => replace(text, old, next, -1),
    }),
    member('string_replace_string_string_int', [STRING, STRING, STRING, INT], STRING, {
      ...rewriting,
      estimate: estimateReplace,
      evaluate: replace,
    }),
  ],
  split: [
    member('string_split_string', [STRING, STRING], listOf(STRING), {
      ...rewriting,
      estimate: estimateSplit,
      evaluate: (text: string, separator: string) => split(text, separator, -1),
    }),
    member('string_split_string_int', [STRING, STRING, INT], listOf(STRING), {
      ...rewriting,
      estimate: estimateSplit,
      evaluate: split,
    }),
  ],
  substring: [
    member('string_substring_int', [STRING, INT], STRING, { ...kept, evaluate: substringFrom }),
    member('string_substring_int_int', [STRING, INT, INT], STRING, { ...kept, evaluate: substring }),
  ],
  trim: [member('string_trim', [STRING], STRING, { ...kept, evaluate: trim })],
  upperAscii: [
    member('string_upper_ascii', [STRING], STRING, {
      ...kept,
      evaluate: (text: string) => ascii(text, /[a-z]+/g, (letters) => letters.toUpperCase()),
    }),
  ],
  format: [
    member('string_format', [STRING, listOf(DYN)], STRING, {
      evaluate: formatText,
      variadic: true,
      cost: readFirst,
      estimate: (args) => ({ cost: scaleSpan(sizeAt(args, 0), 0.1) }),
    }),
  ],
  'strings.quote': [
    free('strings_quote', [STRING], STRING, { evaluate: quote, cost: readFirst, estimate: estimateQuote }),
  ],
  join: [
    member('list_join', [listOf(STRING)], STRING, { ...joining, evaluate: (list: ListValue) => join(list, '') }),
    member('list_join_string', [listOf(STRING), STRING], STRING, { ...joining, evaluate: join }),
  ],
})
