/**
 * Converts scalars from JSON to canonical form. As in Go, a wrong number or string is recorded and decoding continues;
 * a wrong quantity or time fails immediately.
 */
import { Buffer } from 'node:buffer'

import { durationText, parseDuration } from '#lib/go/duration.ts'
import { JsonNumber } from '#lib/json/value.ts'

import { canonicalQuantity } from '../quantity.ts'
import type { ScalarSchema } from '../schema.ts'
import { canonicalMicroTime, canonicalTime } from '../time.ts'
import { normalizeBase64 } from './base64.ts'
import type { DecodeState, Step } from './decode-state.ts'
import { CodecError } from './error.ts'

export function scalarStep({ type, goType }: ScalarSchema): Step {
  switch (type) {
    case 'string':
      return step('', (state, value) => (typeof value === 'string' ? value : state.mismatch(value, goType)))
    case 'boolean':
      return step(false, (state, value) => (typeof value === 'boolean' ? value : state.mismatch(value, goType)))
    case 'int32':
      return step(0, (state, value) => toInt32(value) ?? state.mismatch(value, goType, true))
    case 'int64':
      return step(0, (state, value) => toInt64(value) ?? state.mismatch(value, goType, true))
    case 'float64':
      return step(0, (state, value) => toDouble(value) ?? state.mismatch(value, goType, true))
    case 'bytes':
      return { decode: (state, value) => decodeBytes(state, value, goType), zero: () => null, isEmpty: isEmptyText }
    default:
      return specialStep(type)
  }
}

function step(zero: unknown, decode: Step['decode']): Step {
  return { decode, zero: () => zero, isEmpty: (value) => value === zero }
}

type SpecialType = 'quantity' | 'time' | 'microtime' | 'duration' | 'int-or-string'

function specialStep(type: SpecialType): Step {
  switch (type) {
    case 'quantity':
      return { decode: decodeQuantity, zero: () => '0', isEmpty: () => false }
    case 'time':
      return textStep(isPlainTime, (text) => canonicalTime(text) ?? null)
    case 'microtime':
      return textStep(isPlainMicroTime, (text) => canonicalMicroTime(text) ?? null)
    case 'duration':
      return { ...textStep(isNever, (text) => durationText(parseDuration(text))), zero: () => '0s', isEmpty: isNever }
    default:
      return { decode: decodeIntOrString, zero: () => 0, isEmpty: isNever }
  }
}

function isNever(): boolean {
  return false
}

function isEmptyText(value: unknown): boolean {
  return value === '' || value === null
}

/** A type with text as JSON. `isPlain`: certainly canonical. */
function textStep(isPlain: (text: string) => boolean, normalize: (text: string) => string | null): Step {
  return {
    decode(state, value) {
      if (typeof value !== 'string') throw state.mismatchError(value, 'string')
      return isPlain(value) ? value : orFail(() => normalize(value))
    },
    zero: () => null,
    isEmpty: (value) => value === null,
  }
}

/** Most times: days that every month has, and not the first year, which contains the zero time. */
const plainTime = /^(?!000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{6})?Z$/

function isPlainTime(text: string): boolean {
  return text.length === 20 && plainTime.test(text)
}

function isPlainMicroTime(text: string): boolean {
  return text.length === 27 && plainTime.test(text)
}

/** Most quantities: up to three digits, which no larger unit can shorten. */
const plainQuantity = /^[1-9]\d{0,2}(?:[numkMGTPE]|[KMGTPE]i)?$/

function decodeQuantity(_state: DecodeState, value: unknown): string {
  if (typeof value === 'string' && plainQuantity.test(value)) return value
  return orFail(() => canonicalQuantity(textOf(value).trim()))
}

/** Quantities read the raw JSON, so a number is valid too. */
function textOf(value: unknown): string {
  if (value instanceof JsonNumber) return value.text
  return typeof value === 'object' ? '{}' : `${value as number | bigint | boolean | string}`
}

function decodeIntOrString(state: DecodeState, value: unknown): unknown {
  if (typeof value === 'string') return value
  const number = toInt32(value)
  if (number === undefined) throw state.mismatchError(value, 'int32', true)
  return number
}

function decodeBytes(state: DecodeState, value: unknown, goType: string): unknown {
  if (typeof value === 'string') {
    try {
      return normalizeBase64(value)
    } catch (cause) {
      return state.fault((cause as Error).message)
    }
  }
  return Array.isArray(value) ? decodeByteList(state, value) : state.mismatch(value, goType)
}

/** Go also decodes bytes from a list of numbers. */
function decodeByteList(state: DecodeState, list: readonly unknown[]): string {
  for (const item of list) {
    const byte = item === null ? 0 : toInt32(item)
    if (byte === undefined || byte < 0 || byte > 255) state.mismatch(item, 'uint8', true)
  }
  return Buffer.from(list.map(Number)).toString('base64')
}

function toInt32(value: unknown): number | undefined {
  // Adding zero turns -0 into 0.
  return typeof value === 'number' && value === (value | 0) ? value + 0 : undefined
}

function toInt64(value: unknown): number | bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value + 0 : undefined
  return typeof value === 'bigint' && value === BigInt.asIntN(64, value) ? value : undefined
}

function toDouble(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'bigint' && !(value instanceof JsonNumber)) return undefined
  const number = Number(value)
  return Number.isFinite(number) ? number : undefined
}

function orFail<Value>(normalize: () => Value): Value {
  try {
    return normalize()
  } catch (cause) {
    throw new CodecError('type', (cause as Error).message, { cause })
  }
}
