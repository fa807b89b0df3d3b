/** Values of the corpus, to and from our engine's. */
import { AuthorizerValue } from '#cel/authorizer.ts'
import type { Compiled } from '#cel/environment.ts'
import {
  CelError,
  Double,
  intOf,
  ListValue,
  MapValue,
  OpaqueValue,
  Optional,
  TypeValue,
  Uint,
  type Value,
} from '#cel/value.ts'
import { listValue } from '#cel/values/list.ts'
import { mapOfEntries } from '#cel/values/map.ts'
import { Duration, durationSecondsText, Timestamp, timestampText } from '#cel/values/time.ts'
import { parseGoDuration, parseTimestamp } from '#cel/values/time.ts'

export interface Variable {
  readonly type: string
  readonly value?: unknown
}

export interface Evaluated {
  readonly value?: unknown
  readonly evalError?: string
  readonly programError?: string
  readonly actualCost?: number
}

/** Of upstream's server: one expression. */
const LIMIT = 1_000_000

export function evaluateCase(compiled: Compiled, vars: Readonly<Record<string, Variable>>): Evaluated {
  let program
  try {
    program = compiled.program()
  } catch (error) {
    if (error instanceof CelError) return { programError: error.message }
    throw error
  }
  const budget = { limit: LIMIT, spent: 0 }
  const variables = Object.fromEntries(Object.entries(vars).map(([name, variable]) => [name, decode(variable)]))
  try {
    return { value: encode(program.evaluate(variables, budget)), actualCost: budget.spent }
  } catch (error) {
    if (error instanceof CelError) return { evalError: error.message, actualCost: budget.spent }
    throw error
  }
}

function decode({ type, value }: Variable): Value | undefined {
  if (type === 'authorizer') return new AuthorizerValue(() => ({ allowed: true, reason: '' }))
  return value === undefined ? undefined : decodeAs(type, value)
}

function decodeAs(type: string, value: unknown): Value {
  const list = /^list\((.*)\)$/.exec(type)?.[1]
  if (list !== undefined) return listValue((value as unknown[]).map((element) => decodeAs(list, element)))
  const [, key, element] = /^map\((\w+), *(.*)\)$/.exec(type) ?? []
  if (key !== undefined && element !== undefined) {
    const entries = Object.entries(value as object)
    return mapOfEntries(entries.map(([name, inner]) => [decodeAs(key, name), decodeAs(element, inner)]))
  }
  switch (type) {
    case 'int':
      return intOf(BigInt(value as string))
    case 'uint':
      return new Uint(BigInt(value as string))
    case 'double':
      return new Double(Number(value))
    case 'bytes':
      return new Uint8Array(Buffer.from(value as string, 'base64'))
    case 'timestamp':
      return parseTimestamp(value as string) as Timestamp
    case 'duration':
      return parseGoDuration(value as string) as Duration
    case 'dyn':
      return decodeDyn(value)
    default:
      return value as Value
  }
}

function decodeDyn(value: unknown): Value {
  if (typeof value === 'number') return Number.isInteger(value) ? intOf(BigInt(value)) : new Double(value)
  if (value === null || typeof value !== 'object') return value as Value
  if (Array.isArray(value)) return listValue(value.map(decodeDyn))
  if ('$double' in value) return new Double(Number(value.$double))
  return mapOfEntries(Object.entries(value).map(([key, inner]) => [key, decodeDyn(inner)]))
}

const opaqueNames: Readonly<Record<string, string>> = {
  'kubernetes.Quantity': 'quantity',
  'net.IP': 'ip',
  'net.CIDR': 'cidr',
  'kubernetes.URL': 'url',
  'kubernetes.Semver': 'semver',
  'kubernetes.NamedFormat': 'format',
}

function encode(value: Value): unknown {
  if (typeof value === 'number' || typeof value === 'bigint') return { int: String(value) }
  if (value === null || typeof value !== 'object') return value
  if (value instanceof ListValue) return Array.from({ length: value.size }, (_, at) => encode(value.at(at) as Value))
  if (value instanceof MapValue) return encodeMap(value)
  if (value instanceof Optional) return { optional: value.value === undefined ? [] : [encode(value.value)] }
  return encodeScalar(value)
}

function encodeScalar(value: Value & object): unknown {
  if (value instanceof Double) return { double: doubleText(value.value) }
  if (value instanceof Uint) return { uint: String(value.value) }
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString('base64') }
  if (value instanceof Timestamp) return { timestamp: timestampText(value) }
  if (value instanceof Duration) return { duration: durationSecondsText(value) }
  if (value instanceof TypeValue) return { type: value.name }
  if (value instanceof OpaqueValue) return { [opaqueNames[value.typeName] ?? value.typeName]: String(value) }
  return undefined
}

function encodeMap(map: MapValue): unknown {
  const pairs = Array.from(map.keys(), (key) => [encode(key), encode(map.get(key) as Value)])
  return { map: pairs.sort(([a], [b]) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) }
}

function doubleText(value: number): string {
  if (Object.is(value, -0)) return '-0'
  if (!Number.isFinite(value)) return String(value)
  const [mantissa = '', exponent = ''] = value.toExponential().split('e')
  const isPlain = Number(exponent) >= -4 && Number(exponent) < 17
  return isPlain ? String(value) : `${mantissa}e${exponent.slice(0, 1)}${exponent.slice(1).padStart(2, '0')}`
}
