/**
 * The exact JSON parser, for texts that JSON.parse misreads or rejects. It keeps int64 exact and reports repeated keys.
 * Its error texts are those of Go's encoding/json (as in sigs.k8s.io/json). It uses an explicit stack, so deep nesting
 * cannot overflow.
 */
import { type JsonDuplicate, JsonError, JsonNumber, type JsonObject, type JsonValue, setMember } from './value.ts'

export interface ExactOptions {
  /** Numbers that are not written as an int64 become a `JsonNumber`. */
  readonly exactNumbers: boolean
  readonly maxDepth: number
}

export interface ExactJson {
  readonly value: JsonValue
  /** In order of appearance, each path once, at most `MAX_DUPLICATES`. */
  readonly duplicates: readonly JsonDuplicate[]
}

/** As many as Kubernetes reports. */
const MAX_DUPLICATES = 100

/** A path costs its depth to make: after so many repeated keys no more are looked at. */
const MAX_PATHS = 1_000

/** Throws a JsonError: `syntax`, `depth` or `number`. */
export function parseExactJson(source: string, options: ExactOptions): ExactJson {
  const reader: Reader = {
    text: source.isWellFormed() ? source : source.toWellFormed(),
    at: 0,
    frames: [],
    options,
    duplicates: new Map(),
    pathsLeft: MAX_PATHS,
    overflow: undefined,
  }
  const value = readDocument(reader)
  if (reader.overflow) throw reader.overflow
  return { value, duplicates: [...reader.duplicates.values()] }
}

interface Reader {
  readonly text: string
  readonly frames: Frame[]
  readonly options: ExactOptions
  readonly duplicates: Map<string, JsonDuplicate>
  at: number
  pathsLeft: number
  /** The first number that no double can represent. Reported only at the end: Go finds every syntax error first. */
  overflow: JsonError | undefined
}

/** An array or object not yet closed. Exactly one of `array` and `object` is there. */
interface Frame {
  readonly array: JsonValue[] | undefined
  readonly object: JsonObject
  /** The key whose value is being read. */
  key: string
  /** How many different keys were read. */
  keys: number
  /** The path of the object itself, made when first needed. */
  path: string | undefined
}

function readDocument(reader: Reader): JsonValue {
  for (;;) {
    const opened = readStart(reader)
    if (opened === undefined) continue
    const done = closeFinished(reader, opened)
    if (done !== undefined) return done
  }
}

/** Reads one scalar or empty container and returns it, or opens a container and returns nothing. */
function readStart(reader: Reader): JsonValue | undefined {
  const code = next(reader, 'looking for beginning of value')
  switch (code) {
    case 0x7b: // {
      return openFrame(reader, undefined)
    case 0x5b: // [
      return openFrame(reader, [])
    case 0x22: // "
      return readString(reader)
    case 0x74: // t
      return readLiteral(reader, 'true', true)
    case 0x66: // f
      return readLiteral(reader, 'false', false)
    case 0x6e: // n
      return readLiteral(reader, 'null', null)
    default:
      if (code === 0x2d || isDigit(code)) return readNumber(reader)
      throw unexpected(reader, 'looking for beginning of value')
  }
}

/** Puts a value where it belongs, and every container it completes too; the document when nothing is open any more. */
function closeFinished(reader: Reader, finished: JsonValue): JsonValue | undefined {
  let value = finished
  for (;;) {
    const frame = reader.frames.at(-1)
    if (!frame) return endDocument(reader, value)
    if (frame.array) frame.array.push(value)
    else setMember(frame.object, frame.key, value)
    const context = frame.array ? 'after array element' : 'after object key:value pair'
    const code = next(reader, context)
    if (code === 0x2c) {
      reader.at++
      if (!frame.array) readKey(reader, frame)
      return undefined
    }
    if (code !== (frame.array ? 0x5d : 0x7d)) throw unexpected(reader, context)
    reader.at++
    reader.frames.pop()
    value = frame.array ?? frame.object
  }
}

function endDocument(reader: Reader, value: JsonValue): JsonValue {
  skipSpace(reader)
  if (reader.at < reader.text.length) throw unexpected(reader, 'after top-level value')
  return value
}

function openFrame(reader: Reader, array: JsonValue[] | undefined): JsonValue | undefined {
  if (reader.frames.length >= reader.options.maxDepth) {
    throw new JsonError('depth', unexpected(reader, 'exceeded max depth').message, reader.at)
  }
  reader.at++
  const frame: Frame = { array, object: {}, key: '', keys: 0, path: undefined }
  const context = array ? 'looking for beginning of value' : 'looking for beginning of object key string'
  if (next(reader, context) === (array ? 0x5d : 0x7d)) {
    reader.at++
    return array ?? frame.object
  }
  reader.frames.push(frame)
  if (!array) readKey(reader, frame)
  return undefined
}

function readKey(reader: Reader, frame: Frame): void {
  const context = 'looking for beginning of object key string'
  if (next(reader, context) !== 0x22) throw unexpected(reader, context)
  const key = readString(reader)
  if (next(reader, 'after object key') !== 0x3a) throw unexpected(reader, 'after object key')
  reader.at++
  if (Object.hasOwn(frame.object, key)) noteDuplicate(reader, frame, key)
  else frame.keys++
  frame.key = key
}

function noteDuplicate(reader: Reader, frame: Frame, key: string): void {
  if (reader.duplicates.size >= MAX_DUPLICATES || reader.pathsLeft === 0) return
  reader.pathsLeft--
  frame.path ??= pathTo(reader.frames)
  const path = reader.frames.length === 1 ? key : `${frame.path}.${key}`
  if (!reader.duplicates.has(path)) reader.duplicates.set(path, { path, parent: frame.path, before: frame.keys })
}

/** The path of the innermost frame. */
function pathTo(frames: readonly Frame[]): string {
  const steps = frames.slice(0, -1).map(({ array, key }) => (array ? `[${array.length}]` : `.${key}`))
  return steps.join('').replace(/^\./, '')
}

function skipSpace(reader: Reader): void {
  for (;;) {
    const code = reader.text.charCodeAt(reader.at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
    reader.at++
  }
}

/** The code of the next character that is not blank; it is not consumed. */
function next(reader: Reader, context: string): number {
  skipSpace(reader)
  if (reader.at >= reader.text.length) throw unexpected(reader, context)
  return reader.text.charCodeAt(reader.at)
}

function readLiteral<T extends JsonValue>(reader: Reader, word: string, value: T): T {
  const start = reader.at
  while (reader.at < start + word.length) {
    const expected = word.charAt(reader.at - start)
    if (reader.text.charAt(reader.at) !== expected) {
      throw unexpected(reader, `in literal ${word} (expecting '${expected}')`)
    }
    reader.at++
  }
  return value
}

function readNumber(reader: Reader): JsonValue {
  const start = reader.at
  if (reader.text.charCodeAt(start) === 0x2d) reader.at++
  // Nothing but its fraction or exponent may follow a leading zero.
  if (reader.text.charCodeAt(reader.at) === 0x30) reader.at++
  else readDigits(reader, 'in numeric literal')
  const integerEnd = reader.at
  if (reader.text.charCodeAt(reader.at) === 0x2e) {
    reader.at++
    readDigits(reader, 'after decimal point in numeric literal')
  }
  if ((reader.text.charCodeAt(reader.at) | 0x20) === 0x65) {
    reader.at++
    const sign = reader.text.charCodeAt(reader.at)
    if (sign === 0x2b || sign === 0x2d) reader.at++
    readDigits(reader, 'in exponent of numeric literal')
  }
  const text = reader.text.slice(start, reader.at)
  return (reader.at === integerEnd ? exactInteger(text) : undefined) ?? inexact(reader, text, start)
}

function readDigits(reader: Reader, context: string): void {
  if (!isDigit(reader.text.charCodeAt(reader.at))) throw unexpected(reader, context)
  while (isDigit(reader.text.charCodeAt(reader.at))) reader.at++
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** The most characters an int64 can have, sign included. */
const INT64_LENGTH = 20

/** The value of an int64 by its text, nothing when it is out of range. */
export function exactInteger(text: string): number | bigint | undefined {
  const value = Number(text)
  // Adding zero turns -0 into 0.
  if (Number.isSafeInteger(value)) return value + 0
  if (text.length > INT64_LENGTH) return undefined
  const exact = BigInt(text)
  return BigInt.asIntN(64, exact) === exact ? exact : undefined
}

/** Longer numbers are cut in errors: they may be hostile and have megabytes. */
const MAX_SHOWN = 1_024

function inexact(reader: Reader, text: string, start: number): JsonValue {
  if (reader.options.exactNumbers) return new JsonNumber(text)
  const value = Number(text)
  if (!Number.isFinite(value)) {
    const message = `json: cannot unmarshal number ${text.slice(0, MAX_SHOWN)} into Go value of type float64`
    reader.overflow ??= new JsonError('number', message, start)
  }
  return value + 0
}

/** Reads a string, its opening quote included. */
function readString(reader: Reader): string {
  const { text } = reader
  let start = ++reader.at
  let value = ''
  for (;;) {
    const code = text.charCodeAt(reader.at)
    if (code === 0x22) {
      value += text.slice(start, reader.at++)
      return value
    }
    if (code === 0x5c) {
      value += text.slice(start, reader.at) + readEscape(reader)
      start = reader.at
    } else if (code >= 0x20) {
      reader.at++
    } else {
      throw unexpected(reader, 'in string literal')
    }
  }
}

const ESCAPES = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])

function readEscape(reader: Reader): string {
  const letter = reader.text.charAt(++reader.at)
  const plain = ESCAPES.get(letter)
  if (plain === undefined && letter !== 'u') throw unexpected(reader, 'in string escape code')
  reader.at++
  if (plain !== undefined) return plain
  const unit = readHex(reader)
  if (unit < 0xd800 || unit > 0xdfff) return String.fromCharCode(unit)
  const low = unit < 0xdc00 ? lowSurrogateAt(reader) : -1
  // Half a pair stands for no character; Go puts U+FFFD in its place and reads on behind it.
  if (low < 0) return '\ufffd'
  reader.at += 6
  return String.fromCharCode(unit, low)
}

function readHex(reader: Reader): number {
  let unit = 0
  for (let left = 4; left > 0; left--) {
    const digit = hexDigit(reader.text.charCodeAt(reader.at))
    if (digit < 0) throw unexpected(reader, 'in \\u hexadecimal character escape')
    unit = unit * 16 + digit
    reader.at++
  }
  return unit
}

function hexDigit(code: number): number {
  if (isDigit(code)) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** The low surrogate escaped at the cursor, or -1. */
function lowSurrogateAt(reader: Reader): number {
  if (reader.text.charCodeAt(reader.at) !== 0x5c) return -1
  const escape = reader.text.slice(reader.at, reader.at + 6)
  return /^\\ud[c-f][\da-f]{2}$/i.test(escape) ? Number.parseInt(escape.slice(2), 16) : -1
}

/** Where blanks are not allowed. Go feeds its scanner one at the end of the text, so there it complains of that. */
const INSIDE_TOKEN = /^(in (?!string literal)|after decimal point)/

/** The error for the character at the cursor, or for the end of the text. */
function unexpected(reader: Reader, context: string): JsonError {
  const { text, at } = reader
  const ended = at >= text.length
  if (ended && !INSIDE_TOKEN.test(context)) return new JsonError('syntax', 'unexpected end of JSON input', at)
  const character = ended ? "' '" : quoteCharacter(text, at)
  return new JsonError('syntax', `invalid character ${character} ${context}`, at)
}

/** Go reads bytes and shows the first byte of a character beyond ASCII as if it were Latin-1. */
function quoteCharacter(text: string, at: number): string {
  const point = text.codePointAt(at) as number
  if (point === 0x27) return "'\\''"
  if (point === 0x22) return `'"'`
  const shown = String.fromCharCode(Buffer.from(String.fromCodePoint(point))[0] as number)
  if (point > 0x7e || point < 0x20) return `'${escapeControl(shown)}'`
  return shown === '\\' ? "'\\\\'" : `'${shown}'`
}

const GO_ESCAPES = ['\\a', '\\b', '\\t', '\\n', '\\v', '\\f', '\\r']

function escapeControl(character: string): string {
  const code = character.charCodeAt(0)
  if (code > 0x7f) return character
  return GO_ESCAPES[code - 7] ?? `\\x${code.toString(16).padStart(2, '0')}`
}
