/** intstr.IntOrString: a port by number or name, a count or a percentage. In objects it is simply one or the other. */
import { goQuote, parseGoInt } from '#lib/go-text.ts'

export type IntOrString = number | string

/** What a user typed: an int32 if it is one, text otherwise. */
export function parseIntOrString(text: string): IntOrString {
  try {
    return parseGoInt(text, 'ParseInt', 32)
  } catch {
    return text
  }
}

/** As a number: text that is none counts as zero. */
export function intValue(value: IntOrString): number {
  if (typeof value === 'number') return value
  try {
    return parseGoInt(value, 'Atoi')
  } catch {
    return 0
  }
}

/** Whether it is a percentage: text that ends so, well-formed or not. */
export function isPercentage(value: IntOrString): value is string {
  return typeof value === 'string' && value.endsWith('%')
}

/**
 * A number as it is, a percentage of `total` rounded to a whole. Throws upstream's text on text that is no percentage,
 * and when there is no value.
 */
export function scaledValue(value: IntOrString | undefined, total: number, rounding: 'up' | 'down'): number {
  if (value === undefined) throw new Error('nil value for IntOrString')
  if (typeof value === 'number') return value
  if (!isPercentage(value)) throw new Error('invalid value for IntOrString: invalid type: string is not a percentage')
  const exact = (percentOf(value) * total) / 100
  return rounding === 'up' ? Math.ceil(exact) : Math.floor(exact)
}

function percentOf(value: string): number {
  try {
    return parseGoInt(value.slice(0, -1), 'Atoi')
  } catch (cause) {
    const complaint = `invalid value ${goQuote(value)}: ${(cause as Error).message}`
    throw new Error(`invalid value for IntOrString: ${complaint}`, { cause })
  }
}
