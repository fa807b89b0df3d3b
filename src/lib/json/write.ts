/**
 * The exact JSON writer: like `JSON.stringify`, but with bigints and with keys in Go's order. JavaScript objects do not
 * keep that order for keys such as `10`. It uses an explicit stack, so deep nesting cannot overflow.
 */

import { runAtOnce, shouldYield, type Steps } from '../time-slicing.ts'
import { JsonError, JsonNumber } from './value.ts'

export interface WriteOptions {
  /**
   * Write the keys of every object in order of their UTF-8 bytes, as Go writes maps. With `index-like`, only of an object
   * with a key that looks like an array index, which JavaScript puts first.
   */
  readonly sortedKeys?: boolean | 'index-like'
  /** Spaces per level; 0 (the default) writes everything on one line. */
  readonly indent?: number
}

/** No value that was ever read nests deeper; a value that contains itself does. */
const MAX_DEPTH = 20_000

/** An object or array that is being written. */
interface Frame {
  readonly value: object
  /** Undefined for an array. */
  readonly keys: readonly string[] | undefined
  readonly length: number
  next: number
  isEmpty: boolean
}

/** Throws a JsonError with code `value` for what JSON has no form for: NaN, infinities, cycles. */
export function writeJson(value: unknown, options: WriteOptions = {}): string {
  return runAtOnce(writeJsonInSteps(value, options))
}

/** The same in steps. It is slower than `JSON.stringify`, which cannot pause: that needs 170 ms for 115,000 keys. */
export function* writeJsonInSteps(value: unknown, options: WriteOptions = {}): Steps<string> {
  const texts: string[] = []
  const frames: Frame[] = []
  let parts = [isLong(value) ? yield* quoteInSteps(value) : writeStart(value, frames, options)]
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    if (shouldYield()) {
      texts.push(parts.join(''))
      parts = []
      yield
    }
    if (frame.next === frame.length) {
      frames.pop()
      parts.push(closing(frame, frames.length, options))
      continue
    }
    const key = frame.keys?.[frame.next]
    const member: unknown = Reflect.get(frame.value, key ?? frame.next)
    frame.next++
    if (key !== undefined && (member === undefined || typeof member === 'function')) continue
    parts.push(frame.isEmpty ? '' : ',', breakLine(frames.length, options))
    if (key !== undefined) parts.push(quoteJson(key), options.indent ? ': ' : ':')
    frame.isEmpty = false
    parts.push(isLong(member) ? yield* quoteInSteps(member) : writeStart(member, frames, options))
  }
  texts.push(parts.join(''))
  return texts.join('')
}

function closing({ keys, isEmpty }: Frame, depth: number, options: WriteOptions): string {
  const bracket = keys === undefined ? ']' : '}'
  return isEmpty ? bracket : breakLine(depth, options) + bracket
}

function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length > PIECE_LENGTH
}

function* quoteInSteps(text: string): Steps<string> {
  yield
  return yield* escapeInSteps(JSON.stringify(text))
}

function breakLine(depth: number, { indent = 0 }: WriteOptions): string {
  return indent === 0 ? '' : `\n${' '.repeat(indent * depth)}`
}

/** A scalar, or the opening of a container, whose contents are then on the stack. */
function writeStart(value: unknown, frames: Frame[], options: WriteOptions): string {
  switch (typeof value) {
    case 'string':
      return quoteJson(value)
    case 'number':
      if (!Number.isFinite(value)) throw new JsonError('value', `json: unsupported value: ${goFloat(value)}`)
      return String(value)
    case 'bigint':
    case 'boolean':
      return String(value)
    case 'object':
      return value === null ? 'null' : writeObject(value, frames, options)
    default:
      return 'null'
  }
}

function goFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  return value > 0 ? '+Inf' : '-Inf'
}

function writeObject(value: object, frames: Frame[], options: WriteOptions): string {
  if (value instanceof JsonNumber) return value.text
  if ('toJSON' in value && typeof value.toJSON === 'function') return writeStart(value.toJSON(''), frames, options)
  if (frames.length >= MAX_DEPTH) throw new JsonError('value', 'Value nests too deep for JSON: it may contain itself')
  if (Array.isArray(value)) {
    frames.push({ value, keys: undefined, length: value.length, next: 0, isEmpty: true })
    return '['
  }
  const keys = Object.keys(value)
  if (keys.length === 0) return '{}'
  if (isSorted(keys, options)) sortKeys(keys)
  frames.push({ value, keys, length: keys.length, next: 0, isEmpty: true })
  return '{'
}

function isSorted([first = '']: readonly string[], { sortedKeys }: WriteOptions): boolean {
  return sortedKeys === true || (sortedKeys === 'index-like' && isIndexKey(first))
}

/** True for a key that JavaScript puts first, by number. */
export function isIndexKey(key: string): boolean {
  return /^(?:0|[1-9]\d*)$/.test(key)
}

/** Sorts in place by UTF-8 bytes, which is by code point. */
function sortKeys(keys: string[]): void {
  if (keys.some((key) => BEYOND_BMP.test(key))) keys.sort(compareUtf8)
  else keys.sort()
}

const BEYOND_BMP = /[\ud800-\udfff]/

/** Orders strings by their UTF-8 bytes, as Go does. JavaScript's own order differs for characters beyond U+FFFF. */
export function compareUtf8(left: string, right: string): number {
  const length = Math.min(left.length, right.length)
  for (let at = 0; at < length; at++) {
    const [one, other] = [left.charCodeAt(at), right.charCodeAt(at)]
    if (one !== other) return rank(one) - rank(other)
  }
  return left.length - right.length
}

/** Surrogates, which only characters beyond U+FFFF have, go last. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** Anything but characters that are written as they are. */
const NEEDS_ESCAPE = /[^ !#-%'-;=?-[\]-\u2027\u202a-\ud7ff\ue000-\uffff]/

/** The string as a JSON literal in Go's form. */
export function quoteJson(text: string): string {
  return NEEDS_ESCAPE.test(text) ? escapeLikeGo(JSON.stringify(text)) : `"${text}"`
}

const GO_ESCAPES_TOO = /[<>&\u2028\u2029]|\\ud/
const GO_ESCAPES: readonly (readonly [char: string, escape: string])[] = [
  ['<', '\\u003c'],
  ['>', '\\u003e'],
  ['&', '\\u0026'],
  ['\u2028', '\\u2028'],
  ['\u2029', '\\u2029'],
]

/** Escapes in JSON text what Go escapes and JavaScript does not: `<`, `>`, `&`, U+2028, U+2029, lone surrogates. */
export function escapeLikeGo(json: string): string {
  return GO_ESCAPES_TOO.test(json) ? escapeAll(json) : json
}

/** UTF-16 units between two steps: about a millisecond. */
const PIECE_LENGTH = 32 << 10

/** The same in steps, for a text that may be made of nothing but what is escaped. */
function* escapeInSteps(json: string): Steps<string> {
  if (!GO_ESCAPES_TOO.test(json)) return json
  const pieces: string[] = []
  for (let begin = 0; begin < json.length;) {
    const end = pieceEnd(json, begin + PIECE_LENGTH)
    pieces.push(escapeAll(json.slice(begin, end)))
    begin = end
    yield
  }
  return pieces.join('')
}

/** Where a piece ends that is to end at `at`: earlier where that would be inside an escape. */
function pieceEnd(json: string, at: number): number {
  if (at >= json.length) return json.length
  const slash = json.lastIndexOf('\\', at - 1)
  if (slash < at - LONGEST_ESCAPE) return at
  let first = slash
  while (json[first - 1] === '\\') first--
  // Backslashes come in pairs, but for the one that begins another escape.
  return (slash - first) % 2 === 0 ? slash : at
}

const LONGEST_ESCAPE = String.raw`\u0000`.length

function escapeAll(json: string): string {
  let text = json
  // One character at a time, without a function: a text of a megabyte may be made of nothing else.
  for (const [char, escape] of GO_ESCAPES) if (text.includes(char)) text = text.replaceAll(char, escape)
  if (!text.includes('\\ud')) return text
  return text.replaceAll(/\\(u[\da-f]{4}|.)/g, (found, escape: string) => (escape.startsWith('ud') ? '\\ufffd' : found))
}
