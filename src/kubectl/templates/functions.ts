/** Functions of Go templates: those of text/template, and the two of kubectl. Error texts are upstream's. */
import { isPrintable } from '#lib/go/text.ts'
import { compareUtf8 } from '#lib/json/write.ts'

import { goPrint, goPrintf, goPrintln } from './printf.ts'
import {
  basicKind,
  element,
  GoByte,
  GoFloat,
  inside,
  intOf,
  isMap,
  isTrue,
  NOTHING,
  type Reference,
  referTo,
  typeName,
  typeOf,
} from './reference.ts'

/** Argument types: text, any value (nothing is nil), or an optional value. */
export type Parameter = 'string' | 'any' | 'value' | 'anything'

export interface GoFunction {
  readonly fixed: readonly Parameter[]
  /** The type of variadic arguments; undefined without any. */
  readonly rest?: Parameter
  call(args: readonly Reference[]): Reference
}

function define(fixed: readonly Parameter[], rest: Parameter | undefined, call: GoFunction['call']): GoFunction {
  return rest === undefined ? { fixed, call } : { fixed, rest, call }
}

/** A function from plain values to a plain value. */
function plain(
  fixed: readonly Parameter[],
  rest: Parameter | undefined,
  call: (args: unknown[]) => unknown,
): GoFunction {
  return define(fixed, rest, (args) => referTo(call(args.map(({ value }) => value ?? null))))
}

const COMPARING: readonly [Parameter, Parameter] = ['value', 'value']

function comparison(decide: (left: Reference, right: Reference) => boolean): GoFunction {
  return define(COMPARING, undefined, ([left = NOTHING, right = NOTHING]) =>
    referTo(decide(inside(left), inside(right))),
  )
}

export const FUNCTIONS: ReadonlyMap<string, GoFunction> = new Map<string, GoFunction>([
  // `and` and `or` evaluate lazily, so the caller implements them.
  ['and', define(['value'], 'value', () => NOTHING)],
  ['or', define(['value'], 'value', () => NOTHING)],
  ['not', define(['value'], undefined, ([arg = NOTHING]) => referTo(!isTrue(arg.value)))],
  ['call', define(['value'], 'value', ([arg = NOTHING]) => refuseCall(inside(arg)))],
  ['html', plain([], 'any', (args) => escapeHtml(joined(args)))],
  ['js', plain([], 'any', (args) => escapeJs(joined(args)))],
  ['urlquery', plain([], 'any', (args) => escapeQuery(joined(args)))],
  ['print', plain([], 'any', goPrint)],
  ['printf', plain(['string'], 'any', ([format, ...args]) => goPrintf(format as string, args))],
  ['println', plain([], 'any', goPrintln)],
  ['len', define(['value'], undefined, ([arg = NOTHING]) => referTo(BigInt(length(arg))))],
  ['index', define(['value'], 'value', ([item = NOTHING, ...indexes]) => index(item, indexes))],
  ['slice', define(['value'], 'value', ([item = NOTHING, ...indexes]) => referTo(slice(item, indexes)))],
  ['eq', define(['value'], 'value', ([first = NOTHING, ...others]) => referTo(equalsAny(inside(first), others)))],
  ['ne', comparison((left, right) => !isEqual(left, right))],
  ['lt', comparison(isLess)],
  ['le', comparison((left, right) => isLess(left, right) || isEqual(left, right))],
  ['gt', comparison((left, right) => !isLess(left, right) && !isEqual(left, right))],
  ['ge', comparison((left, right) => !isLess(left, right))],
  ['exists', define(['any'], 'any', ([item = NOTHING, ...indexes]) => referTo(exists(item, indexes)))],
  ['base64decode', plain(['string'], undefined, ([text]) => decodeBase64(text as string))],
])

/** A placeholder for the call's text, which only the caller has. */
export const CALLEE = '\0'

const ZERO_VALUE = 'reflect: call of reflect.Value.Type on zero Value'

/** No value is callable. */
function refuseCall(fun: Reference): never {
  throw new Error(fun.value === undefined ? 'call of nil' : `non-function ${CALLEE} of type ${typeOf(fun)}`)
}

function length({ value }: Reference): number {
  if (value === null) throw new Error('len of nil pointer')
  if (value === undefined) throw new Error(ZERO_VALUE)
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (Array.isArray(value)) return value.length
  if (isMap(value)) return Object.keys(value).length
  throw new Error(`len of type ${typeName(value)}`)
}

function index(item: Reference, indexes: readonly Reference[]): Reference {
  let found = inside(item)
  if (found.value === undefined) throw new Error('index of untyped nil')
  for (const each of indexes) found = indexOnce(found, inside(each).value)
  return found
}

function indexOnce({ value }: Reference, at: unknown): Reference {
  if (value === null) throw new Error('index of nil pointer')
  if (isMap(value)) {
    if (at === undefined) throw new Error('value is nil; should be of type string')
    if (typeof at !== 'string') throw new Error(`value has type ${typeName(at)}; should be string`)
    return element(Object.hasOwn(value, at) ? value[at] : null)
  }
  if (!Array.isArray(value) && typeof value !== 'string') throw new Error(`can't index item of type ${typeName(value)}`)
  const items: unknown[] = typeof value === 'string' ? [...Buffer.from(value)] : value
  const position = indexArgument(at, items.length)
  const kind = typeof value === 'string' ? 'string' : 'slice'
  if (position === items.length) throw new Error(`reflect: ${kind} index out of range`)
  return typeof value === 'string' ? referTo(new GoByte(items[position] as number)) : element(items[position])
}

function indexArgument(at: unknown, limit: number): number {
  if (at === undefined) throw new Error('cannot index slice/array with nil')
  const number = intOf(at)
  if (number === undefined) throw new Error(`cannot index slice/array with type ${typeName(at)}`)
  if (number < 0n || number > BigInt(limit)) throw new Error(`index out of range: ${number}`)
  return Number(number)
}

function slice(item: Reference, indexes: readonly Reference[]): unknown {
  const { value } = inside(item)
  if (value === undefined) throw new Error('slice of untyped nil')
  if (indexes.length > 3) throw new Error(`too many slice indexes: ${indexes.length}`)
  if (typeof value === 'string' && indexes.length === 3) throw new Error('cannot 3-index slice a string')
  const items = typeof value === 'string' ? Buffer.from(value) : value
  if (!Array.isArray(items) && !Buffer.isBuffer(items)) throw new Error(`can't slice item of type ${typeName(value)}`)
  const size = items.length
  const given = indexes.map(({ value: at, isInterface }) => indexArgument(isInterface ? {} : at, size))
  const [start = 0, end = size, capacity = size] = given
  if (start > end) throw new Error(`invalid slice index: ${start} > ${end}`)
  if (end > capacity) throw new Error(`invalid slice index: ${end} > ${capacity}`)
  return Buffer.isBuffer(items) ? items.subarray(start, end).toString() : items.slice(start, end)
}

function equalsAny(first: Reference, others: readonly Reference[]): boolean {
  if (others.length === 0) throw new Error('missing argument for comparison')
  return others.some((other) => isEqual(first, inside(other)))
}

function isEqual(left: Reference, right: Reference): boolean {
  const [one, other] = [basicKind(left.value), basicKind(right.value)]
  if (isIntegral(one) && isIntegral(other)) return intOf(left.value) === intOf(right.value)
  if (one !== other) {
    if (left.value === undefined || right.value === undefined) return false
    throw incompatible(left, right)
  }
  if (one === 'float') return floatOf(left.value) === floatOf(right.value)
  if (one !== undefined) return left.value === right.value
  if (left.value === undefined || right.value === undefined) return left.value === right.value
  throw new Error(`non-comparable type ${goPrintf('%s', [right.value])}: ${typeOf(right)}`)
}

function isLess(left: Reference, right: Reference): boolean {
  const [one, other] = [basicKind(left.value), basicKind(right.value)]
  if (one === undefined || other === undefined) throw new Error('invalid type for comparison')
  if (isIntegral(one) && isIntegral(other)) return (intOf(left.value) as bigint) < (intOf(right.value) as bigint)
  if (one !== other) throw incompatible(left, right)
  if (one === 'bool') throw new Error('invalid type for comparison')
  if (one === 'string') return compareUtf8(left.value as string, right.value as string) < 0
  return floatOf(left.value) < floatOf(right.value)
}

function floatOf(value: unknown): number {
  return value instanceof GoFloat ? value.value : (value as number)
}

function isIntegral(kind: string | undefined): boolean {
  return kind === 'int' || kind === 'uint'
}

function incompatible(left: Reference, right: Reference): Error {
  return new Error(`incompatible types for comparison: ${typeOf(left)} and ${typeOf(right)}`)
}

/** True if `index` would succeed with these arguments. */
function exists(item: Reference, indexes: readonly Reference[]): boolean {
  let { value } = item
  for (const { value: at } of indexes) value = elementAt(value, at)
  return indexes.length === 0 || (value !== null && value !== undefined)
}

/** Undefined for invalid input. */
function elementAt(value: unknown, at: unknown): unknown {
  if (isMap(value)) {
    const key = at ?? ''
    return typeof key === 'string' && Object.hasOwn(value, key) ? value[key] : undefined
  }
  if (!Array.isArray(value) && typeof value !== 'string') return undefined
  const items: unknown[] = Array.isArray(value) ? value : [...Buffer.from(value)]
  const position = intOf(at)
  return position === undefined ? undefined : items[Number(position)]
}

function joined(args: readonly unknown[]): string {
  if (args.length === 1 && typeof args[0] === 'string') return args[0]
  return goPrint(args.map((arg) => arg ?? '<no value>'))
}

const HTML: Readonly<Record<string, string>> = {
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\0': '\ufffd',
}

function escapeHtml(text: string): string {
  return text.replaceAll(/["'&<>\0]/g, (char) => HTML[char] ?? '')
}

function escapeJs(text: string): string {
  const escape = (char: string): string => {
    if (char === '\\' || char === "'" || char === '"') return `\\${char}`
    const point = char.codePointAt(0) as number
    const isPlain = point >= 0x80 ? isPrintable(char) : point >= 0x20 && !'<>&='.includes(char)
    return isPlain ? char : `\\u${point.toString(16).toUpperCase().padStart(4, '0')}`
  }
  return Array.from(text, escape).join('')
}

function escapeQuery(text: string): string {
  const bytes = [...Buffer.from(text)]
  return bytes
    .map((byte) => {
      const char = String.fromCharCode(byte)
      if (/[\w.~-]/.test(char)) return char
      return char === ' ' ? '+' : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
    })
    .join('')
}

function decodeBase64(text: string): string {
  const clean = text.replaceAll(/[\r\n]/g, '')
  const wrong = /^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?/.exec(clean)?.[0].length ?? 0
  if (wrong < clean.length) {
    const bad = clean.slice(wrong).search(/[^A-Za-z\d+/=]/)
    throw new Error(`base64 decode failed: illegal base64 data at input byte ${illegalByte(clean, wrong, bad)}`)
  }
  return Buffer.from(clean, 'base64').toString()
}

/** Go's offset of a decoding error: the first invalid character, or the end of an incomplete group. */
function illegalByte(text: string, group: number, bad: number): number {
  if (bad >= 0) return group + bad
  const rest = text.slice(group)
  const padding = rest.indexOf('=')
  if (padding < 0) return group + Math.min(rest.length, 4) - (rest.length < 4 ? rest.length % 4 : 0)
  if (padding < 2) return group + padding
  return padding === 2 && rest[3] !== '=' ? group + Math.min(3, rest.length) : group + 4
}
