/** Implements Go's fmt.Sprint, Sprintln and Sprintf for template values, including the output for mismatched verbs. */
import { goDouble, goNumber, goQuote } from '#lib/go/text.ts'

import { goSyntax, sortedKeys } from './go-value.ts'
import { GoByte, GoFloat, intOf, show, typeName } from './reference.ts'

/** Inserts spaces between operands if neither is a string. */
export function goPrint(args: readonly unknown[]): string {
  return args
    .map((arg, at) => {
      const needsSpace = at > 0 && typeof arg !== 'string' && typeof args[at - 1] !== 'string'
      return (needsSpace ? ' ' : '') + show(arg)
    })
    .join('')
}

export function goPrintln(args: readonly unknown[]): string {
  return `${args.map(show).join(' ')}\n`
}

interface Verb {
  readonly verb: string
  readonly minus: boolean
  readonly plus: boolean
  readonly sharp: boolean
  readonly space: boolean
  readonly zero: boolean
  readonly width: number | undefined
  readonly precision: number | undefined
}

const VERB = /%([-+# 0]*)(\*|\d+)?(?:\.(\*|\d*))?([^])?/gu

export function goPrintf(format: string, args: readonly unknown[]): string {
  let used = 0
  const size = (written: string | undefined): number | undefined => {
    if (written === undefined) return undefined
    return written === '*' ? Number(intOf(args[used++]) ?? 0n) : Number(written)
  }
  const out = format.replaceAll(VERB, (...[, flags, width, precision, verb]: (string | undefined)[]) => {
    const [columns, digits] = [size(width), size(precision)]
    const has = (flag: string): boolean => flags?.includes(flag) ?? false
    if (verb === undefined) return '%!(NOVERB)'
    if (verb === '%') return '%'
    if (used >= args.length) return `%!${verb}(MISSING)`
    return formatted(args[used++], {
      verb,
      minus: has('-') || (columns ?? 0) < 0,
      plus: has('+'),
      sharp: has('#'),
      space: has(' '),
      zero: has('0') && !has('-'),
      width: columns === undefined ? undefined : Math.abs(columns),
      precision: digits,
    })
  })
  if (used >= args.length) return out
  const extra = args.slice(used).map((arg) => (arg === null ? '<nil>' : `${typeName(arg)}=${show(arg)}`))
  return `${out}%!(EXTRA ${extra.join(', ')})`
}

function formatted(value: unknown, verb: Verb): string {
  if (verb.verb === 'T') return padded(typeName(value), verb)
  if (value === null || value === undefined) return padded(verb.verb === 'v' ? '<nil>' : `%!${verb.verb}(<nil>)`, verb)
  if (verb.verb === 'v' && verb.sharp)
    return padded(goSyntax(value instanceof GoByte ? value.value : value, goNumber), verb)
  if (value instanceof GoFloat) return floatText(value.value, verb)
  if (typeof value === 'boolean') return boolText(value, verb)
  if (typeof value === 'string') return stringText(value, verb)
  const integer = intOf(value)
  if (integer !== undefined) return integerText(value, integer, verb)
  if (typeof value === 'number') return floatText(value, verb)
  if (Array.isArray(value)) return `[${value.map((item) => inner(item, verb)).join(' ')}]`
  const map = value as Record<string, unknown>
  return `map[${sortedKeys(map)
    .map((key) => `${formatted(key, verb)}:${inner(map[key], verb)}`)
    .join(' ')}]`
}

/** fmt reports no mismatched verb for nil inside lists and maps. */
function inner(value: unknown, verb: Verb): string {
  return value === null ? '<nil>' : formatted(value, verb)
}

function bad(value: unknown, { verb }: Verb): string {
  return `%!${verb}(${typeName(value)}=${show(value)})`
}

function padded(text: string, { width = 0, minus, zero }: Verb): string {
  const missing = width - Array.from(text).length
  if (missing <= 0) return text
  return minus ? text + ' '.repeat(missing) : (zero ? '0' : ' ').repeat(missing) + text
}

function boolText(value: boolean, verb: Verb): string {
  return 'tv'.includes(verb.verb) ? padded(String(value), verb) : bad(value, verb)
}

function stringText(value: string, verb: Verb): string {
  const cut = verb.precision === undefined ? value : Array.from(value).slice(0, verb.precision).join('')
  switch (verb.verb) {
    case 'v':
    case 's':
      return padded(cut, verb)
    case 'q':
      return padded(
        verb.sharp && !/[^\t -_a-~\u0080-\ufefe\uff00-\uffff]/.test(cut) ? `\`${cut}\`` : goQuote(cut),
        verb,
      )
    case 'x':
    case 'X': {
      const hex = Buffer.from(value).subarray(0, verb.precision).toString('hex')
      const spaced = verb.space ? hex.replaceAll(/(..)(?!$)/g, '$1 ') : hex
      const prefixed = verb.sharp && hex !== '' ? `0x${spaced.replaceAll(' ', ' 0x')}` : spaced
      return padded(verb.verb === 'X' ? prefixed.toUpperCase() : prefixed, verb)
    }
    default:
      return bad(value, verb)
  }
}

const BASES: Readonly<Record<string, readonly [number, string]>> = {
  v: [10, ''],
  d: [10, ''],
  b: [2, '0b'],
  o: [8, '0'],
  O: [8, '0o'],
  x: [16, '0x'],
  X: [16, '0X'],
}

function integerText(given: unknown, value: bigint, verb: Verb): string {
  const base = BASES[verb.verb]
  if (base === undefined) return otherIntegerText(given, value, verb)
  const size = value < 0n ? -value : value
  const sign = value < 0n ? '-' : verb.plus ? '+' : verb.space ? ' ' : ''
  const prefix = verb.sharp || verb.verb === 'O' ? base[1] : ''
  const digits = size.toString(base[0])
  let body = verb.verb === 'X' ? digits.toUpperCase() : digits
  if (verb.precision !== undefined) body = body.padStart(verb.precision, '0')
  else if (verb.zero && verb.width !== undefined) body = body.padStart(verb.width - sign.length, '0')
  return padded(sign + prefix + body, { ...verb, zero: false })
}

function otherIntegerText(given: unknown, value: bigint, verb: Verb): string {
  const point = value >= 0n && value <= 0x10_ffffn ? Number(value) : 0xff_fd
  const char = String.fromCodePoint(point)
  if (verb.verb === 'c') return padded(char, verb)
  if (verb.verb === 'q')
    return padded(char === "'" ? String.raw`'\''` : `'${goQuote(char).slice(1, -1).replace(/^\\"$/, '"')}'`, verb)
  if (verb.verb !== 'U') return bad(given, verb)
  const number = `U+${value.toString(16).toUpperCase().padStart(4, '0')}`
  return padded(verb.sharp ? `${number} '${char}'` : number, verb)
}

function floatText(value: number, verb: Verb): string {
  const text = unsignedFloat(Math.abs(value), verb)
  if (text === undefined) return bad(new GoFloat(value), verb)
  const isNegative = value < 0 || Object.is(value, -0)
  const sign = isNegative ? '-' : verb.plus ? '+' : verb.space ? ' ' : ''
  if (!verb.zero || verb.width === undefined) return padded(sign + text, verb)
  return sign + text.padStart(verb.width - sign.length, '0')
}

function unsignedFloat(value: number, { verb, precision }: Verb): string | undefined {
  switch (verb) {
    case 'v':
    case 'g':
    case 'G': {
      const text = precision === undefined ? goDouble(value) : shortest(value, precision)
      return verb === 'G' ? text.toUpperCase() : text
    }
    case 'f':
    case 'F':
      return fixed(value, precision ?? 6)
    case 'e':
    case 'E': {
      const text = exponent(value.toExponential(precision ?? 6))
      return verb === 'E' ? text.toUpperCase() : text
    }
    default:
      return undefined
  }
}

/** The number of digits that JavaScript can print; no tie has more. */
const MOST_DIGITS = 99

/** Rounds ties to even, where JavaScript rounds up. */
function fixed(value: number, digits: number): string {
  const exact = value.toFixed(MOST_DIGITS)
  const end = exact.length - MOST_DIGITS + digits
  const isTie = /^50*$/.test(exact.slice(end))
  const down = exact.slice(0, digits === 0 ? end - 1 : end)
  return isTie && /[02468]$/.test(down) ? down : value.toFixed(digits)
}

/** The exponent has at least two digits. */
function exponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, 'e$10$2')
}

/** `%.3g`: the given number of digits, without trailing zeros. */
function shortest(value: number, precision: number): string {
  const digits = Math.max(1, precision)
  const [mantissa = '', power = '0'] = value.toExponential(digits - 1).split('e')
  const bare = mantissa.includes('.') ? mantissa.replace(/\.?0+$/, '') : mantissa
  if (Number(power) < -4 || Number(power) >= digits) return exponent(`${bare}e${power}`)
  const plain = fixed(value, Math.max(0, digits - 1 - Number(power)))
  return plain.includes('.') ? plain.replace(/\.?0+$/, '') : plain
}
