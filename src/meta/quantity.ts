/**
 * resource.Quantity: `500m`, `1.5Gi`, `1e3`. A value is an exact integer times a power of ten, not finer than 10^-9,
 * and a suffix family for printing.  Three results differ from upstream, whose results are wrong. Integers beyond int64
 * saturate, negative amounts round away from zero, and 10^21 or more is printed with an exponent.
 */
import { trimEndOf } from '#lib/trim.ts'

export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent'

/** `unscaled` × 10^`scale`. Immutable: arithmetic returns new quantities. */
export interface Quantity {
  /** A bigint only if a number is not exact. */
  readonly unscaled: number | bigint
  readonly scale: number
  readonly format: QuantityFormat
  /** The source text, if upstream treats it as canonical unchecked (`+1`, `1.500`). */
  readonly text?: string
}

type Integer = number | bigint

const NANO = -9
const MAX_INT64 = 2n ** 63n - 1n
/** Longer numbers are rejected: they are useless and cost quadratic time. */
const MAX_DIGITS = 10_000
/**
 * Sums of amounts further apart than this many digits are the larger one, because the exact sum may exhaust the memory.
 */
const MAX_GAP = 4 * MAX_DIGITS

const decimalSuffixes = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E']
const binarySuffixes = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const decimalExponents = new Map(decimalSuffixes.map((suffix, at) => [suffix, 3 * at + NANO]))
const binaryExponents = new Map(binarySuffixes.slice(1).map((suffix, at) => [suffix, 10 * (at + 1)]))

const grammar = /^([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)$/
const wrongFormat = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

const wrongNumber = 'unable to parse numeric part of quantity'

/** Parses a quantity. Throws upstream's text. Does not trim, which JSON decoding does before. */
export function parseQuantity(text: string): Quantity {
  const match = text === '' ? null : grammar.exec(text)
  if (match === null) throw new Error(wrongFormat)
  const [, sign, zeros, rest, fraction = '', letters] = match as unknown as string[]
  const whole = rest === '' || rest === undefined ? '0' : rest
  const suffix = interpretSuffix(letters ?? '')
  if (suffix === undefined) throw new Error("unable to parse quantity's suffix")
  if (whole.length + fraction.length > MAX_DIGITS) throw new Error(wrongNumber)
  const digitless = `${zeros}${rest}${fraction}` === ''
  const written: ParsedText = {
    text,
    negative: sign === '-',
    digits: whole + fraction,
    whole,
    fraction,
    suffix,
    digitless,
  }
  return suffix.format === 'BinarySI' ? parseBinary(written) : parseDecimal(written)
}

/** The quantity with that integer value. */
export function quantityOf(value: Integer, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { unscaled: compact(value), scale: 0, format }
}

/** The quantity of that many thousandths. */
export function quantityOfMilli(value: Integer, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { unscaled: compact(value), scale: -3, format }
}

/** The canonical text, which parses to an equal quantity. */
export function quantityText(quantity: Quantity): string {
  if (quantity.text !== undefined) return quantity.text
  if (isZeroQuantity(quantity)) return '0'
  return (quantity.format === 'BinarySI' ? binaryText(quantity) : undefined) ?? decimalText(quantity)
}

/** Canonicalizes a text. */
export function canonicalQuantity(text: string): string {
  return quantityText(parseQuantity(text))
}

export function isZeroQuantity({ unscaled }: Quantity): boolean {
  return unscaled === 0
}

/** -1, 0 or 1. */
export function quantitySign({ unscaled }: Quantity): number {
  return unscaled === 0 ? 0 : unscaled > 0 ? 1 : -1
}

/** Negative, zero or positive, by value: `1` and `1000m` are equal. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  if (a.scale === b.scale) return a.unscaled < b.unscaled ? -1 : a.unscaled > b.unscaled ? 1 : 0
  const sign = quantitySign(a)
  if (sign !== quantitySign(b) || sign === 0) return sign - quantitySign(b)
  // By the position of the first digit if it decides; otherwise the two are close enough to be aligned.
  const places = digitCount(a.unscaled) + a.scale - (digitCount(b.unscaled) + b.scale)
  if (places !== 0) return sign * Math.sign(places)
  const low = Math.min(a.scale, b.scale)
  const left = shiftUp(a.unscaled, a.scale - low)
  const right = shiftUp(b.unscaled, b.scale - low)
  return left < right ? -1 : left > right ? 1 : 0
}

/** The sum, in the format of `a` unless it is zero. */
export function addQuantities(a: Quantity, b: Quantity): Quantity {
  if (b.unscaled === 0) return { unscaled: a.unscaled, scale: a.scale, format: a.unscaled === 0 ? b.format : a.format }
  if (a.unscaled === 0) return { unscaled: b.unscaled, scale: b.scale, format: b.format }
  const scale = Math.min(a.scale, b.scale)
  if (Math.abs(a.scale - b.scale) > MAX_GAP) {
    const greater = a.scale > b.scale ? a : b
    return { unscaled: greater.unscaled, scale: greater.scale, format: a.format }
  }
  const left = shiftUp(a.unscaled, a.scale - scale)
  return { unscaled: plus(left, shiftUp(b.unscaled, b.scale - scale)), scale, format: a.format }
}

/** The difference, in the format of `a` unless it is zero. */
export function subtractQuantities(a: Quantity, b: Quantity): Quantity {
  return addQuantities(a, negateQuantity(b))
}

export function negateQuantity({ unscaled, scale, format }: Quantity): Quantity {
  return { unscaled: unscaled === 0 ? 0 : -unscaled, scale, format }
}

/** Times an integer. */
export function multiplyQuantity({ unscaled, scale, format }: Quantity, factor: Integer): Quantity {
  return { unscaled: times(unscaled, compact(factor)), scale, format }
}

/** Rounds away from zero to 10^`scale`: `1.1` becomes `2` for scale 0. */
export function roundQuantityUp(quantity: Quantity, scale: number): Quantity {
  if (quantity.scale >= scale) return quantity
  return { unscaled: shiftDown(quantity.unscaled, scale - quantity.scale), scale, format: quantity.format }
}

/** As an integer, rounded away from zero. The nearest number beyond 2^53; limited to the range of int64. */
export function quantityValue(quantity: Quantity): number {
  return Number(scaledInteger(quantity, 0))
}

/** In thousandths, rounded away from zero: the unit of CPU. Limits as in `quantityValue`. */
export function quantityMilliValue(quantity: Quantity): number {
  return Number(scaledInteger(quantity, -3))
}

/** The exact 64-bit integer; otherwise undefined. */
export function quantityInt64(quantity: Quantity): bigint | undefined {
  const value = BigInt(scaledInteger(quantity, 0))
  return compareQuantities(quantityOf(value), quantity) === 0 ? value : undefined
}

/** The nearest double, or close to it. */
export function quantityNumber({ unscaled, scale }: Quantity): number {
  const value = Number(unscaled)
  return scale < 0 ? value / 10 ** -scale : value * 10 ** scale
}

interface Suffix {
  readonly exponent: number
  readonly format: QuantityFormat
}

interface ParsedText {
  readonly text: string
  readonly negative: boolean
  /** `whole` without leading zeros (or `0`), then `fraction`. */
  readonly digits: string
  readonly whole: string
  readonly fraction: string
  readonly suffix: Suffix
  /** Zero for a simple number, rejected otherwise: upstream has two parsers. */
  readonly digitless: boolean
}

function interpretSuffix(suffix: string): Suffix | undefined {
  const decimal = decimalExponents.get(suffix)
  if (decimal !== undefined) return { exponent: decimal, format: 'DecimalSI' }
  const binary = binaryExponents.get(suffix)
  if (binary !== undefined) return { exponent: binary, format: 'BinarySI' }
  const written = /^[eE]([+-]?)0*([0-9]{0,19})$/.exec(suffix)
  if (written === null || !/[0-9]$/.test(suffix)) return undefined
  const value = BigInt(`${written[1] === '-' ? '-' : ''}${written[2] === '' ? '0' : (written[2] as string)}`)
  if (BigInt.asIntN(64, value) !== value) return undefined
  // Upstream keeps the low 32 bits.
  return { exponent: Number(BigInt.asIntN(32, value)), format: 'DecimalExponent' }
}

/** Upstream keeps up to 18 digits not finer than nano unchanged, with their text if it looks canonical. */
function parseDecimal({ text, negative, digits, fraction, suffix, digitless }: ParsedText): Quantity {
  const scale = (suffix.exponent - fraction.length) | 0
  const unscaled = signed(digits, negative)
  const { format } = suffix
  if (digits.length > 18 || scale < NANO) {
    if (digitless) throw new Error(wrongNumber)
    return roundQuantityUp({ unscaled, scale, format }, NANO)
  }
  const canonical = text === '0' || (scale % 3 === 0 && !digits.endsWith('000') && !digits.startsWith('0'))
  return canonical ? { unscaled, scale, format, text } : { unscaled, scale, format }
}

function parseBinary({ text, negative, digits, whole, fraction, suffix, digitless }: ParsedText): Quantity {
  const unscaled = times(signed(digits, negative), 2 ** suffix.exponent)
  const { exponent, format } = suffix
  if (fraction === '' && whole.length + Math.trunc((exponent * 3) / 10) <= 14) {
    // Not a multiple of eight, so not of 1024: the suffix is the largest possible.
    const canonical = Number(whole) % 8 !== 0
    return canonical ? { unscaled, scale: 0, format, text } : { unscaled, scale: 0, format }
  }
  if (digitless) throw new Error(wrongNumber)
  return capBinary(roundQuantityUp({ unscaled, scale: -fraction.length, format }, NANO))
}

/** Binary amounts end at the largest int64 and begin at one; smaller ones are decimal. */
function capBinary(quantity: Quantity): Quantity {
  const size = quantitySign(quantity) < 0 ? negateQuantity(quantity) : quantity
  if (compareQuantities(size, quantityOf(MAX_INT64)) > 0) {
    return quantityOf(quantitySign(quantity) < 0 ? -MAX_INT64 : MAX_INT64, 'BinarySI')
  }
  const small = quantity.unscaled !== 0 && compareQuantities(size, quantityOf(1)) < 0
  return small ? { ...quantity, format: 'DecimalSI' } : quantity
}

/** Undefined if a binary amount must be printed as decimal: too small, or no integer. */
function binaryText({ unscaled, scale }: Quantity): string | undefined {
  // Beyond this no suffix helps.
  if (scale > 30) return undefined
  const value = scale >= 0 ? shiftUp(unscaled, scale) : shiftDown(unscaled, -scale)
  if (scale < 0 && shiftUp(value, -scale) !== unscaled) return undefined
  if (value > -1024 && value < 1024) return undefined
  let rest = BigInt(value)
  let at = 0
  for (; at < binarySuffixes.length - 1 && rest % 1024n === 0n; at++) rest /= 1024n
  return `${rest}${binarySuffixes[at]}`
}

function decimalText({ unscaled, scale, format }: Quantity): string {
  const text = unscaled.toString()
  const digits = trimEndOf(text, '0')
  const shift = scale + text.length - digits.length
  const zeros = ((shift % 3) + 3) % 3
  const exponent = shift - zeros
  const number = digits + '0'.repeat(zeros)
  const suffix = format === 'DecimalExponent' ? undefined : decimalSuffixes[(exponent - NANO) / 3]
  if (suffix !== undefined) return number + suffix
  return exponent === 0 ? number : `${number}e${exponent}`
}

/** The value in units of 10^`scale`, rounded away from zero, within the range of int64. */
function scaledInteger({ unscaled, scale: own }: Quantity, scale: number): Integer {
  if (own < scale) return saturate(shiftDown(unscaled, scale - own))
  return saturate(shiftUp(unscaled, Math.min(own - scale, 20)))
}

function saturate(value: Integer): Integer {
  if (typeof value === 'number') return value
  if (value > MAX_INT64) return MAX_INT64
  return value < -MAX_INT64 - 1n ? -MAX_INT64 - 1n : value
}

/** Times 10^`places`. */
function shiftUp(value: Integer, places: number): Integer {
  if (places === 0 || value === 0) return value
  if (typeof value === 'number' && places <= 15) return times(value, 10 ** places)
  return compact(BigInt(value) * 10n ** BigInt(places))
}

/** Divided by 10^`places`, rounded away from zero. */
function shiftDown(value: Integer, places: number): Integer {
  if (value === 0) return 0
  const sign = value > 0 ? 1 : -1
  if (digitCount(value) <= places) return sign
  if (typeof value === 'number') {
    const divisor = 10 ** places
    return Math.trunc(value / divisor) + (value % divisor === 0 ? 0 : sign)
  }
  const divisor = 10n ** BigInt(places)
  return compact(value / divisor + (value % divisor === 0n ? 0n : BigInt(sign)))
}

function plus(a: Integer, b: Integer): Integer {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b
    if (Number.isSafeInteger(sum)) return sum
  }
  return compact(BigInt(a) + BigInt(b))
}

function times(a: Integer, b: Integer): Integer {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b
    if (Number.isSafeInteger(product)) return product === 0 ? 0 : product
  }
  return compact(BigInt(a) * BigInt(b))
}

/** As a number if that is exact. */
function compact(value: Integer): Integer {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : BigInt(value)
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

function signed(digits: string, negative: boolean): Integer {
  const value = digits.length <= 15 ? Number(digits) : compact(BigInt(digits))
  return negative && value !== 0 ? -value : value
}

function digitCount(value: Integer): number {
  const text = value.toString()
  return text.startsWith('-') ? text.length - 1 : text.length
}
