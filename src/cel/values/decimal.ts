/** Formats doubles as exact decimal text, rounded half to even. */

interface Fraction {
  readonly isNegative: boolean
  readonly numerator: bigint
  /** A power of two. */
  readonly denominator: bigint
}

const bits = new DataView(new ArrayBuffer(8))

function fractionOf(value: number): Fraction {
  bits.setFloat64(0, value)
  const raw = bits.getBigUint64(0)
  const exponent = Number((raw >> 52n) & 0x7ffn)
  const mantissa = raw & 0xf_ffff_ffff_ffffn
  const shift = exponent === 0 ? -1074 : exponent - 1075
  const whole = exponent === 0 ? mantissa : mantissa | (1n << 52n)
  return {
    isNegative: raw >> 63n === 1n,
    numerator: shift > 0 ? whole << BigInt(shift) : whole,
    denominator: shift < 0 ? 1n << BigInt(-shift) : 1n,
  }
}

function divideRounded(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator
  const twice = 2n * (numerator % denominator)
  const isUp = twice > denominator || (twice === denominator && quotient % 2n === 1n)
  return isUp ? quotient + 1n : quotient
}

/** With so many digits behind the point; finite values only. */
export function fixedText(value: number, precision: number): string {
  const { isNegative, numerator, denominator } = fractionOf(value)
  const digits = divideRounded(numerator * 10n ** BigInt(precision), denominator)
    .toString()
    .padStart(precision + 1, '0')
  const whole = digits.slice(0, digits.length - precision)
  const fraction = digits.slice(digits.length - precision)
  return `${isNegative ? '-' : ''}${whole}${precision === 0 ? '' : `.${fraction}`}`
}

/** As people of the United States write it: `1,234,567.89`. */
export function groupedText(value: number, precision: number): string {
  const [whole = '', fraction] = fixedText(value, precision).split('.')
  const grouped = whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

const superscripts = '\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079'

/** `1.234568×10⁰³`: always six digits, regardless of the requested precision. */
export function scientificText(value: number): string {
  const [mantissa = '', exponent = ''] = value.toExponential(6).split('e')
  const digits = exponent.slice(1).padStart(2, '0')
  const raised = digits.replaceAll(/./g, (digit) => superscripts.charAt(Number(digit)))
  return `${mantissa}\u00d710${exponent.startsWith('-') ? '\u207b' : ''}${raised}`
}
