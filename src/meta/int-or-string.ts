/** intstr.IntOrString: a number or a string, such as a port by number or name. */
import { goQuote, parseGoInt } from '#lib/go/text.ts'

export type IntOrString = number | string

/** A typed value: an int32 if it is one, otherwise text. */
export function parseIntOrString(text: string): IntOrString {
  try {
    return parseGoInt(text, 'ParseInt', 32)
  } catch {
    return text
  }
}

/** As a number: other text counts as zero. */
export function intValue(value: IntOrString): number {
  if (typeof value === 'number') return value
  try {
    return parseGoInt(value, 'Atoi')
  } catch {
    return 0
  }
}

/** True for text that ends with a percent sign, valid or not. */
export function isPercentage(value: IntOrString): value is string {
  return typeof value === 'string' && value.endsWith('%')
}

/**
 * A number unchanged, or a percentage of `total`, rounded. Throws upstream's text for other text and for an absent
 * value.
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
