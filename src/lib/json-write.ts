/**
 * The exact writer: what `JSON.stringify` gives, but for bigints and for keys in Go's order, which a JavaScript object
 * cannot have when a key looks like an array index. A loop with its own stack: no depth of nesting can overflow.
 */
import { JsonError, JsonNumber } from './json-value.ts'

export interface WriteOptions {
  /** Write the keys of every object in order of their UTF-8 bytes, as Go writes maps. */
  readonly sortedKeys?: boolean
  /** Spaces per level; 0 (the default) writes everything on one line. */
  readonly indent?: number
}

/** No value that was ever read nests deeper; a value that contains itself does. */
const MAX_DEPTH = 20_000

interface Frame {
  readonly value: object
  /** Undefined for an array. */
  readonly keys: readonly string[] | undefined
  index: number
  empty: boolean
}

/** Throws a JsonError with code `value` for what JSON has no form for: NaN, infinities, cycles. */
export function writeJson(value: unknown, options: WriteOptions = {}): string {
  const frames: Frame[] = []
  let out = writeStart(value, frames, options)
  for (;;) {
    const frame = frames.at(-1)
    if (!frame) return out
    const length = frame.keys ? frame.keys.length : (frame.value as unknown[]).length
    if (frame.index === length) {
      frames.pop()
      out += frame.empty ? '' : breakLine(frames.length, options)
      out += frame.keys ? '}' : ']'
    } else {
      out += writeNext(frame, frames, options)
    }
  }
}

function writeNext(frame: Frame, frames: Frame[], options: WriteOptions): string {
  const key = frame.keys?.[frame.index]
  const member: unknown = key === undefined ? (frame.value as unknown[])[frame.index] : Reflect.get(frame.value, key)
  frame.index++
  if (key !== undefined && (member === undefined || typeof member === 'function')) return ''
  const lead = (frame.empty ? '' : ',') + breakLine(frames.length, options)
  frame.empty = false
  if (key === undefined) return lead + writeStart(member, frames, options)
  return `${lead}${quoteJson(key)}${options.indent ? ': ' : ':'}${writeStart(member, frames, options)}`
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
  const keys = Array.isArray(value) ? undefined : Object.keys(value)
  if (keys && options.sortedKeys) sortKeys(keys)
  frames.push({ value, keys, index: 0, empty: true })
  return keys ? '{' : '['
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
  if (!GO_ESCAPES_TOO.test(json)) return json
  let text = json
  // One character at a time, without a function: a text of a megabyte may be made of nothing else.
  for (const [char, escape] of GO_ESCAPES) if (text.includes(char)) text = text.replaceAll(char, escape)
  if (!text.includes('\\ud')) return text
  return text.replaceAll(/\\(u[\da-f]{4}|.)/g, (found, escape: string) => (escape.startsWith('ud') ? '\\ufffd' : found))
}
