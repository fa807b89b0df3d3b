/**
 * Validates numbers as kube-openapi does: integers in int64 arithmetic, other numbers as doubles. A limit that the type
 * cannot represent is an error of the value.
 */
import { goDouble } from '#lib/go/text.ts'

import type { ValueRules } from './structural.ts'

/** An error with a path and a value, or without a path. */
export type NumberFault =
  | { readonly text: string; readonly shown: number | bigint }
  /** Upstream has no path for it. */
  | { readonly loose: string }

/** True if Go would decode it as int64. An integral double equals an integer in memory. */
export function isInt64(value: number | bigint): boolean {
  return typeof value === 'bigint' ? value >= -(2n ** 63n) && value < 2n ** 63n : Number.isSafeInteger(value)
}

/** `type` and `format` of the schema; `name` is the path in texts. */
export function numberFaults(
  value: number | bigint,
  rules: ValueRules | undefined,
  { type, name }: { readonly type: string; readonly name: string },
): NumberFault[] {
  const format = formatFor(type, rules?.format ?? '')
  const misfit = (prefix: string, number: number | bigint): NumberFault[] =>
    fits(number, type, format)
      ? []
      : [{ loose: `${prefix} value must be of type ${typeText(type, format)} in ${name}` }]
  const faults = misfit('Checked', value)
  if (rules === undefined) return faults
  const { multipleOf, minimum, maximum } = rules
  const limit = (prefix: string, bound: number | undefined, compare: BoundCheck): NumberFault[] => {
    if (bound === undefined) return []
    const odd = misfit(prefix, bound)
    const whole = odd.length === 0 && isInt64(value)
    const fault = whole ? compare(BigInt(value), BigInt(Math.trunc(bound))) : compare(Number(value), bound)
    return fault === undefined ? odd : [...odd, fault]
  }
  return [
    ...faults,
    ...limit('MultipleOf', multipleOf, (given, factor) => multipleFault(name, given, factor)),
    ...limit('Minimum boundary', minimum, (given, bound) => {
      if (rules.exclusiveMinimum === true ? given > bound : given >= bound) return undefined
      const than = rules.exclusiveMinimum === true ? 'greater than' : 'greater than or equal to'
      return { text: `should be ${than} ${text(bound)}`, shown: given }
    }),
    ...limit('Maximum boundary', maximum, (given, bound) => {
      if (rules.exclusiveMaximum === true ? given < bound : given <= bound) return undefined
      const than = rules.exclusiveMaximum === true ? 'less than' : 'less than or equal to'
      return { text: `should be ${than} ${text(bound)}`, shown: given }
    }),
  ]
}

type BoundCheck = (value: number | bigint, bound: number | bigint) => NumberFault | undefined

function multipleFault(name: string, value: number | bigint, factor: number | bigint): NumberFault | undefined {
  if (factor <= 0) {
    return { text: `factor MultipleOf declared for ${name} must be positive: ${text(factor)}`, shown: factor }
  }
  const isMultiple =
    typeof value === 'bigint' ? value % (factor as bigint) === 0n : isWhole(quotient(value, factor as number))
  return isMultiple ? undefined : { text: `should be a multiple of ${text(factor)}`, shown: value }
}

function text(bound: number | bigint): string {
  return typeof bound === 'bigint' ? bound.toString() : goDouble(bound)
}

function quotient(value: number, factor: number): number {
  return factor < 1 ? (1 / factor) * value : value / factor
}

/** True if a double prints as an integer in JSON, within rounding. */
function isWhole(value: number): boolean {
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) return false
  const whole = Math.trunc(value)
  const difference = Math.abs(value - whole)
  return difference === 0 || (whole !== 0 && difference / Math.abs(value + whole) < 1e-9)
}

const formats: Readonly<Record<string, readonly string[]>> = {
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
}

function formatFor(type: string, format: string): string {
  return formats[type]?.includes(format) === true ? format : ''
}

const MAX_FLOAT = 3.4028235677973366e38

function fits(value: number | bigint, type: string, format: string): boolean {
  if (type === 'integer') {
    if (!isInt64(value)) return false
    return format !== 'int32' || (value >= -(2 ** 31) && value < 2 ** 31)
  }
  return type !== 'number' || format !== 'float' || Math.abs(Number(value)) < MAX_FLOAT
}

function typeText(type: string, format: string): string {
  return format === '' ? `${type} (default format)` : `${type} with format ${format}`
}
