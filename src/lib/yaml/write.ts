/**
 * Writes YAML byte for byte as sigs.k8s.io/yaml does, because users compare the output of `kubectl get -o yaml`. It
 * writes block style with naturally sorted keys and folds lines past 80 columns. Sequences are not indented under their
 * key.
 */
import { JsonNumber } from '../json/value.ts'
import { runAtOnce, shouldYield, type Steps } from '../time-slicing.ts'
import { YamlError } from './error.ts'
import { formatFloat, resolveScalar } from './scalar.ts'

/** Text past this column is folded at the next space. */
const WIDTH = 80

/** A longer key, in UTF-8 bytes, is written behind a question mark. */
const MAX_SIMPLE_KEY = 128

/** Deeper values than the reader reads are refused before they overflow the stack. */
const MAX_DEPTH = 1_000

interface Writer {
  out: string
  /** How many characters the current line has. */
  column: number
}

/** Throws a YamlError for a value that nests too deep (or contains itself). Members that are undefined are left out. */
export function stringifyYaml(value: unknown): string {
  return runAtOnce(writeYaml(value))
}

/** The same in steps, for what may be large. */
export function* writeYaml(value: unknown): Steps<string> {
  const writer: Writer = { out: '', column: 0 }
  yield* writeValue(writer, value, { indent: 0, depth: 0, place: 'root' })
  return `${writer.out}\n`
}

interface Position {
  /** The column of the enclosing key or dash. */
  readonly indent: number
  readonly depth: number
  /** The text before the value: nothing, `key:`, or a separate `-`, `?` or `:`, behind which it may begin at once. */
  readonly place: 'root' | 'key' | 'indicator'
}

function* writeValue(writer: Writer, given: unknown, position: Position): Steps<void> {
  const value = given !== null && typeof given === 'object' ? unwrap(given) : given
  if (typeof value !== 'object' || value === null) return writeScalar(writer, value, position)
  if (shouldYield()) yield
  yield* Array.isArray(value) ? writeSequence(writer, value, position) : writeMapping(writer, value, position)
}

function writeScalar(writer: Writer, value: unknown, position: Position): void {
  if (position.place === 'key') put(writer, ' ')
  const indent = position.indent + 2
  if (typeof value === 'string') writeString(writer, value, { indent, isKey: false })
  else put(writer, plainScalar(value))
}

function unwrap(value: object): unknown {
  if (value instanceof JsonNumber) return resolveScalar(value.text).value
  return 'toJSON' in value && typeof value.toJSON === 'function'
    ? (value.toJSON as (key: string) => unknown)('')
    : value
}

function plainScalar(value: unknown): string {
  // The value goes through JSON in Go, where a whole number looks like an integer, and is read back as one if it can be.
  if (typeof value === 'number')
    return resolveScalar(String(value)).kind === 'int' ? String(value) : formatFloat(value, 64)
  return typeof value === 'bigint' || typeof value === 'boolean' ? String(value) : 'null'
}

function* writeSequence(writer: Writer, items: readonly unknown[], position: Position): Steps<void> {
  if (items.length === 0) return put(writer, position.place === 'key' ? ' []' : '[]')
  checkDepth(position)
  // Under its key a sequence is not indented; behind another indicator it begins on the same line, two columns on.
  const indent = position.place === 'indicator' ? position.indent + 2 : position.indent
  for (const [index, item] of items.entries()) {
    if (index > 0 || position.place === 'key') newLine(writer, indent)
    put(writer, '- ')
    yield* writeValue(writer, item, { indent, depth: position.depth + 1, place: 'indicator' })
  }
}

function* writeMapping(writer: Writer, value: object, position: Position): Steps<void> {
  const entries = Object.entries(value).filter(([, member]) => member !== undefined && typeof member !== 'function')
  if (entries.length === 0) return put(writer, position.place === 'key' ? ' {}' : '{}')
  checkDepth(position)
  entries.sort(([left], [right]) => compareKeys(left, right))
  const indent = position.place === 'root' ? 0 : position.indent + 2
  for (const [index, [key, member]] of entries.entries()) {
    if (index > 0 || position.place === 'key') newLine(writer, indent)
    const simple = isSimpleKey(key)
    if (simple) {
      writeString(writer, key, { indent, isKey: true })
    } else {
      put(writer, '? ')
      writeString(writer, key, { indent: indent + 2, isKey: false })
      newLine(writer, indent)
    }
    put(writer, simple ? ':' : ': ')
    yield* writeValue(writer, member, { indent, depth: position.depth + 1, place: simple ? 'key' : 'indicator' })
  }
}

function checkDepth({ depth }: Position): void {
  if (depth > MAX_DEPTH) throw new YamlError('depth', `yaml: exceeded max depth of ${MAX_DEPTH}`)
}

function isSimpleKey(key: string): boolean {
  return (
    !/[\n\r\u0085\u2028\u2029]/.test(key) &&
    (key.length * 3 <= MAX_SIMPLE_KEY || Buffer.byteLength(key) <= MAX_SIMPLE_KEY)
  )
}

/** Of one line. */
function put(writer: Writer, text: string): void {
  writer.out += text
  writer.column += text.length
}

function newLine(writer: Writer, indent: number): void {
  writer.out += `\n${' '.repeat(indent)}`
  writer.column = indent
}

interface StringPlace {
  /** Where folded and literal lines begin. */
  readonly indent: number
  /** A simple key is never folded. */
  readonly isKey: boolean
}

/**
 * Characters that must be escaped: controls, U+FEFF, noncharacters, and (go-yaml's oddity) all beyond U+FFFF. U+2028
 * and U+2029 too: go-yaml writes them raw, in forms that it does not read back.
 */
const UNPRINTABLE = /[^\n -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/

function writeString(writer: Writer, text: string, place: StringPlace): void {
  if (UNPRINTABLE.test(text) || wouldBeRead(text)) return writeDoubleQuoted(writer, text, place)
  if (text.includes('\n')) {
    const literal = !place.isKey && !text.endsWith(' ') && !text.includes(' \n')
    return literal ? writeLiteral(writer, text, place) : writeDoubleQuoted(writer, text, place)
  }
  if (isPlain(text)) return writeFolded(writer, text, { ...place, quote: '' })
  writeFolded(writer, text.replaceAll("'", "''"), { ...place, quote: "'" })
}

/** Whether the text, unquoted, would be read as something other than a string, here or by other readers of YAML 1.1. */
function wouldBeRead(text: string): boolean {
  return resolveScalar(text).kind !== 'str' || /^[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?$/.test(text)
}

function isPlain(text: string): boolean {
  return (
    !/^(---|\.\.\.)/.test(text) &&
    !/^[#,[\]{}&*!|>'"%@`]/.test(text) &&
    !/^[-?:](?:[ \t]|$)/.test(text) &&
    !/:(?:[ \t]|$)|[ \t\0]#/.test(text) &&
    !/^ | $/.test(text)
  )
}

/** Plain or in single quotes: breaks lines at single spaces. */
function writeFolded(writer: Writer, text: string, place: StringPlace & { readonly quote: string }): void {
  put(writer, place.quote)
  if (place.isKey || writer.column + text.length <= WIDTH) put(writer, text)
  else {
    let written = 0
    for (const { index } of text.matchAll(/(?<=[^ ]) (?=[^ ])/g)) {
      if (writer.column + index - written <= WIDTH) continue
      put(writer, text.slice(written, index))
      newLine(writer, place.indent)
      written = index + 1
    }
    put(writer, text.slice(written))
  }
  put(writer, place.quote)
}

function writeLiteral(writer: Writer, text: string, place: StringPlace): void {
  put(writer, '|')
  if (/^[ \n]/.test(text)) put(writer, '2')
  if (!text.endsWith('\n')) put(writer, '-')
  else if (text === '\n' || text.endsWith('\n\n')) put(writer, '+')
  const margin = ' '.repeat(place.indent)
  // The last line break of the text is the one that ends the line.
  const lines = text.endsWith('\n') ? text.slice(0, -1) : text
  writer.out += `\n${lines.replaceAll(/(^|\n)(?=[^\n])/g, `$1${margin}`)}`
  writer.column = 0
}

const ESCAPES = new Map([
  [0x00, '0'],
  [0x07, 'a'],
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0b, 'v'],
  [0x0c, 'f'],
  [0x0d, 'r'],
  [0x1b, 'e'],
  [0x22, '"'],
  [0x5c, '\\'],
  [0x85, 'N'],
  [0xa0, '_'],
  [0x2028, 'L'],
  [0x2029, 'P'],
])

function writeDoubleQuoted(writer: Writer, text: string, place: StringPlace): void {
  put(writer, '"')
  const characters = Array.from(text)
  let afterSpace = false
  for (const [index, character] of characters.entries()) {
    const inside = index > 0 && index < characters.length - 1
    if (character === ' ' && !place.isKey && !afterSpace && inside && writer.column > WIDTH) {
      newLine(writer, place.indent)
      if (characters[index + 1] === ' ') put(writer, '\\')
    } else {
      put(writer, escaped(character))
    }
    afterSpace = character === ' '
  }
  put(writer, '"')
}

function escaped(character: string): string {
  if (!UNPRINTABLE.test(character) && character !== '\n' && character !== '"' && character !== '\\') return character
  const point = character.codePointAt(0) as number
  const letter = ESCAPES.get(point)
  if (letter !== undefined) return `\\${letter}`
  const hex = point.toString(16).toUpperCase()
  if (point <= 0xff) return `\\x${hex.padStart(2, '0')}`
  return point <= 0xffff ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}

const LETTER = /^\p{L}$/u
const DIGIT = /^\p{Nd}$/u

/** go-yaml's order of keys: letters after everything else, runs of digits by their value. */
function compareKeys(left: string, right: string): number {
  const [one, other] = [Array.from(left), Array.from(right)]
  const shorter = Math.min(one.length, other.length)
  for (let at = 0; at < shorter; at++) {
    if (one[at] !== other[at]) return compareAt(one, other, at)
  }
  return one.length - other.length
}

/** Orders two keys that are equal up to `at` and differ there. */
function compareAt(one: readonly string[], other: readonly string[], at: number): number {
  const [a, b] = [one[at] as string, other[at] as string]
  const [aLetter, bLetter] = [LETTER.test(a), LETTER.test(b)]
  const byCodePoint = (a.codePointAt(0) as number) - (b.codePointAt(0) as number)
  if (aLetter && bLetter) return byCodePoint
  if (aLetter || bLetter) return bLetter ? -1 : 1
  const [aRun, bRun] = [digitRun(one, at), digitRun(other, at)]
  // A zero inside a number is a digit like any other, at its start it is padding.
  const inside = (a === '0' || b === '0') && startsNonZero(one, at) ? '1' : '0'
  const difference = numberOf(inside, aRun) - numberOf(inside, bRun)
  if (difference !== 0n) return difference < 0n ? -1 : 1
  return aRun.length - bRun.length || byCodePoint
}

function digitRun(text: readonly string[], from: number): readonly string[] {
  let end = from
  while (end < text.length && DIGIT.test(text[end] as string)) end++
  return text.slice(from, end)
}

/** Whether the run of digits that ends before `at` has another digit than zero. */
function startsNonZero(text: readonly string[], at: number): boolean {
  for (let before = at - 1; before >= 0 && DIGIT.test(text[before] as string); before--) {
    if (text[before] !== '0') return true
  }
  return false
}

/** As Go's int64 arithmetic has it: long runs wrap around. */
function numberOf(first: string, run: readonly string[]): bigint {
  let value = BigInt(first)
  for (const digit of run) value = value * 10n + BigInt((digit.codePointAt(0) as number) - 0x30)
  return BigInt.asIntN(64, value)
}
