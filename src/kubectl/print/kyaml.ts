/**
 * Prints KYAML as sigs.k8s.io/yaml does: a YAML subset like JSON, with quotes around strings and without quotes around
 * unambiguous keys.
 */
import { isPrintable } from '#lib/go/text.ts'
import { isJsonObject, JsonNumber, type JsonValue } from '#lib/json/value.ts'
import { writeJson } from '#lib/json/write.ts'

import { sortedKeys } from '../templates/go-value.ts'

export interface KyamlOptions {
  /** Keys are sorted by bytes, with this exception. */
  readonly keepOrder?: boolean
  /** Only the keys of the outermost object keep their order. */
  readonly keepOuterOrder?: boolean
}

/** One document with its separator line. */
export function writeKyaml(value: JsonValue, options: KyamlOptions = {}): string {
  const keysOf = (object: object, indent: number): string[] => {
    const keeps = options.keepOrder === true || (options.keepOuterOrder === true && indent === 0)
    return keeps ? Object.keys(object) : sortedKeys(object)
  }
  return `---\n${node(value, 0, keysOf)}\n`
}

type KeysOf = (object: object, indent: number) => string[]

function node(value: JsonValue | undefined, indent: number, keysOf: KeysOf): string {
  if (Array.isArray(value)) return sequence(value, indent, keysOf)
  if (isJsonObject(value)) return mapping(value, indent, keysOf)
  return typeof value === 'string' ? quoted(value, indent + 1, FOLDED) : writeJson(value ?? null)
}

function sequence(items: readonly JsonValue[], indent: number, keysOf: KeysOf): string {
  if (items.length === 0) return '[]'
  const isCuddled = items.every((item) => typeof item === 'object' && item !== null && !(item instanceof JsonNumber))
  if (isCuddled) return `[${items.map((item) => node(item, indent, keysOf)).join(', ')}]`
  const lines = items.map((item) => `${margin(indent + 1)}${node(item, indent + 1, keysOf)},\n`)
  return `[\n${lines.join('')}${margin(indent)}]`
}

function mapping(object: Readonly<Record<string, JsonValue>>, indent: number, keysOf: KeysOf): string {
  const keys = keysOf(object, indent)
  if (keys.length === 0) return '{}'
  const lines = keys.map((key) => `${margin(indent + 1)}${keyText(key)}: ${node(object[key], indent + 1, keysOf)},\n`)
  return `{\n${lines.join('')}${margin(indent)}}`
}

function margin(indent: number): string {
  return '  '.repeat(indent)
}

function keyText(key: string): string {
  return needsQuotes(key) ? quoted(key, 0, COMPACT) : key
}

const SAFE = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_./-]*[\p{L}\p{N}_])?$/u
const WORDS = new Set(['null', '~', '', 'true', 'y', 'yes', 'on', 'false', 'n', 'no', 'off', 't', 'f', '0', '1'])
const INTEGER = /^[+-]?(?:0b[01]+|0o?[0-7]*|0x[\da-f]+|[1-9]\d*)$/i
const DECIMAL = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)$/i
const HEX_FLOAT = /^[+-]?0x(?:[\da-f]+\.?[\da-f]*|\.[\da-f]+)p[+-]?\d+$/i
const SEXAGESIMAL = /^[+-]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/
const DATE = /^\d{4}-\d{1,2}-\d{1,2}$/

/** True if a key could be read as another type or has special characters. */
function needsQuotes(key: string): boolean {
  const bare = key.replaceAll('_', '')
  return (
    !SAFE.test(key) ||
    WORDS.has(key.toLowerCase()) ||
    INTEGER.test(bare) ||
    DECIMAL.test(bare) ||
    HEX_FLOAT.test(bare) ||
    SEXAGESIMAL.test(key) ||
    DATE.test(key)
  )
}

interface Manner {
  /** Each line of the string becomes a line of the document. */
  readonly folds: boolean
  readonly newline: string
  readonly tab: string
}

const FOLDED: Manner = { folds: true, newline: '\\n\\\n', tab: '\t' }
const COMPACT: Manner = { folds: false, newline: '\\n', tab: '\\t' }

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\r', '\\r'],
  ['\v', '\\v'],
  ['\0', '\\0'],
  ['\u001b', '\\e'],
  ['\u0085', '\\N'],
  ['\u00a0', '\\_'],
  ['\u2028', '\\L'],
  ['\u2029', '\\P'],
])

function quoted(text: string, indent: number, manner: Manner): string {
  const isMultiple = manner.folds && text.includes('\n')
  let out = isMultiple ? '"\\\n' : '"'
  for (const char of text) {
    // A parser would drop leading white space of a line.
    if (out.endsWith('\n')) out += margin(indent) + (/^\s$/u.test(char) && char !== '\n' ? '\\' : ' ')
    out += escaped(char, manner)
  }
  if (!isMultiple) return `${out}"`
  return `${out}${out.endsWith('\n') ? '' : '\\\n'}${margin(indent)}"`
}

function escaped(char: string, { newline, tab }: Manner): string {
  if (char === '\n') return newline
  if (char === '\t') return tab
  const named = ESCAPES.get(char)
  if (named !== undefined) return named
  if (isPrintable(char)) return char
  const point = char.isWellFormed() ? (char.codePointAt(0) as number) : 0xff_fd
  const hex = point.toString(16)
  if (point < 0x20 || point === 0x7f) return `\\x${hex.padStart(2, '0')}`
  return point < 0x1_0000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`
}
