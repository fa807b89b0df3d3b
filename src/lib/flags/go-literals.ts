/**
 * Go's literals, as in flags and config files of Kubernetes. Accepts the same input as Go and fails with the same error
 * texts, which people search for.
 */
import { goQuote } from '../go/text.ts'

function refuse(fn: string, text: string, why: 'invalid syntax' | 'value out of range'): Error {
  return new Error(`strconv.${fn}: parsing ${goQuote(text)}: ${why}`)
}

const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True'])
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False'])

/** strconv.ParseBool. Throws with its text. */
export function parseBool(text: string): boolean {
  if (TRUE.has(text)) return true
  if (FALSE.has(text)) return false
  throw refuse('ParseBool', text, 'invalid syntax')
}

const INTEGER = /^([+-]?)(0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?\d)*)$/

/**
 * strconv.ParseInt with base 0: decimal, 0x, 0b, 0o, a leading 0 for octal, and underscores between digits. Numbers
 * that do not fit `bits`, or that JavaScript cannot hold exactly, are out of range.
 */
export function parseInteger(text: string, bits = 64): number {
  const match = INTEGER.exec(text)
  if (match === null) throw refuse('ParseInt', text, 'invalid syntax')
  const value = magnitude(match[2] as string) * (match[1] === '-' ? -1n : 1n)
  if (BigInt.asIntN(bits, value) !== value || !isExact(value)) throw refuse('ParseInt', text, 'value out of range')
  return Number(value)
}

/** strconv.ParseUint with base 0. Signs are a syntax error, as in Go. */
export function parseUnsigned(text: string, bits = 64): number {
  const match = INTEGER.exec(text)
  if (match === null || match[1] !== '') throw refuse('ParseUint', text, 'invalid syntax')
  const value = magnitude(match[2] as string)
  if (BigInt.asUintN(bits, value) !== value || !isExact(value)) throw refuse('ParseUint', text, 'value out of range')
  return Number(value)
}

function magnitude(digits: string): bigint {
  const plain = digits.replaceAll('_', '')
  return BigInt(/^0\d/.test(plain) ? `0o${plain.slice(1)}` : plain.toLowerCase())
}

function isExact(value: bigint): boolean {
  return Number.isSafeInteger(Number(value))
}

const DECIMAL = /^[+-]?(?:\d(?:_?\d)*\.?|\.\d|\d(?:_?\d)*\.\d)(?:_?\d)*(?:[eE][+-]?\d+)?$/
const NOT_FINITE = /^([+-]?)(?:inf|infinity)$/i

/** strconv.ParseFloat for decimal numbers, infinities and NaN. Go's hexadecimal floats are refused. */
export function parseFloating(text: string, bits: 32 | 64 = 64): number {
  if (DECIMAL.test(text)) {
    const value = Number(text.replaceAll('_', ''))
    if (!Number.isFinite(bits === 32 ? Math.fround(value) : value))
      throw refuse('ParseFloat', text, 'value out of range')
    return value
  }
  const infinite = NOT_FINITE.exec(text)
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity
  if (/^nan$/i.test(text)) return Number.NaN
  throw refuse('ParseFloat', text, 'invalid syntax')
}

/** strconv.FormatFloat(value, 'g', -1, 64): shortest digits, with an exponent below 1e-4 and from 1e6 on. */
export function formatFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  const [digits = '', power = '0'] = value.toExponential().split('e')
  const exponent = Number(power)
  if (value === 0 || (exponent >= -4 && exponent < 6)) return Object.is(value, -0) ? '-0' : String(value)
  return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}
