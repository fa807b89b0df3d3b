import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  isZeroQuantity,
  multiplyQuantity,
  negateQuantity,
  parseQuantity,
  type Quantity,
  quantityInt64,
  quantityMilliValue,
  quantityNumber,
  quantityOf,
  quantityOfMilli,
  quantitySign,
  quantityText,
  quantityValue,
  roundQuantityUp,
  subtractQuantities,
} from './quantity.ts'

describe('canonical text of a quantity', () => {
  for (const [text, canonical] of [
    ['0', '0'],
    ['-0', '0'],
    ['0Ki', '0'],
    ['.', '0'],
    ['+', '0'],
    ['1', '1'],
    ['+1', '+1'],
    ['0010', '0010'],
    ['1.500', '1.500'],
    ['1000m', '1'],
    ['0.5', '500m'],
    ['.5', '500m'],
    ['1.5Gi', '1536Mi'],
    ['-1.5Gi', '-1536Mi'],
    ['1024Ki', '1Mi'],
    ['1023Ki', '1023Ki'],
    ['1000Ki', '1000Ki'],
    ['0.1Ki', '102400m'],
    ['1.1Ki', '1126400m'],
    ['0.0001Ki', '102400u'],
    ['1000k', '1M'],
    ['1e3', '1e3'],
    ['1E3', '1E3'],
    ['1000e0', '1e3'],
    ['1e-1', '100e-3'],
    ['1e-12', '1e-9'],
    ['0.1n', '1n'],
    ['1.0000000001', '1000000001n'],
    ['9Ei', '9223372036854775807'],
    ['-9Ei', '-9223372036854775807'],
    ['12345678901234567890', '12345678901234567890'],
    ['100E', '100E'],
    ['1e1000000001', '100e999999999'],
    ['1e-1000000000', '1e-9'],
  ] as const) {
    it(`is ${canonical} for ${text}, as upstream writes it`, () => assert.equal(canonicalQuantity(text), canonical))
  }

  it('keeps the value in cases in which upstream loses the suffix', () =>
    assert.equal(canonicalQuantity('1000E'), '1e21'))

  const format = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
  const suffix = "unable to parse quantity's suffix"
  const number = 'unable to parse numeric part of quantity'
  for (const [text, message] of [
    ['', format],
    [' 1', format],
    ['1 ', format],
    ['a', format],
    ['1.2.3', format],
    ['--1', suffix],
    ['1b', format],
    ['1Kb', format],
    ['1\n', format],
    ['1kM', suffix],
    ['1e', suffix],
    ['1-5', suffix],
    ['1e+', suffix],
    ['1e9223372036854775808', suffix],
    ['Pi', number],
    ['9'.repeat(20_000), number],
  ] as const) {
    it(`does not exist for "${text.slice(0, 30)}"`, () => assert.throws(() => parseQuantity(text), { message }))
  }
})

describe('arithmetic of quantities', () => {
  const sum = (a: string, b: string): string => quantityText(addQuantities(parseQuantity(a), parseQuantity(b)))

  it('keeps the format of the left operand unless it is zero', () => {
    assert.equal(sum('1Gi', '1G'), '2073741824')
    assert.equal(sum('0', '1Gi'), '1Gi')
    assert.equal(sum('1Gi', '0'), '1Gi')
    assert.equal(sum('500m', '500m'), '1')
    assert.equal(sum('1Ki', '1Ki'), '2Ki')
    assert.equal(sum('9007199254740993', '1m'), '9007199254740993001m')
    assert.equal(sum('+1', '0'), '1')
  })

  it('subtracts, negates and multiplies', () => {
    assert.equal(quantityText(subtractQuantities(parseQuantity('1'), parseQuantity('250m'))), '750m')
    assert.equal(quantityText(subtractQuantities(parseQuantity('0'), parseQuantity('1Ki'))), '-1Ki')
    assert.equal(quantityText(multiplyQuantity(parseQuantity('1.5Gi'), 2)), '3Gi')
    assert.equal(quantityText(negateQuantity(parseQuantity('0'))), '0')
    assert.equal(quantitySign(parseQuantity('-1m')), -1)
    assert.ok(isZeroQuantity(multiplyQuantity(parseQuantity('5'), 0)))
  })

  it('rounds up, away from zero', () => {
    assert.equal(quantityValue(parseQuantity('1m')), 1)
    assert.equal(quantityValue(parseQuantity('1001m')), 2)
    assert.equal(quantityValue(parseQuantity('-1001m')), -2)
    assert.equal(quantityMilliValue(parseQuantity('0.1')), 100)
    assert.equal(quantityMilliValue(parseQuantity('1u')), 1)
    assert.equal(quantityText(roundQuantityUp(parseQuantity('1.0001'), -3)), '1001m')
  })

  it('converts to exact integers, or undefined', () => {
    assert.equal(quantityInt64(parseQuantity('1.5Gi')), 1_610_612_736n)
    assert.equal(quantityInt64(parseQuantity('9223372036854775807')), 2n ** 63n - 1n)
    assert.equal(quantityInt64(parseQuantity('1.5')), undefined)
    assert.equal(quantityInt64(parseQuantity('10E')), undefined)
    assert.equal(quantityNumber(parseQuantity('1.5Ki')), 1536)
    assert.equal(quantityNumber(parseQuantity('100m')), 0.1)
    assert.equal(quantityText(quantityOf(2 ** 30, 'BinarySI')), '1Gi')
    assert.equal(quantityText(quantityOfMilli(1500)), '1500m')
  })

  it('handles huge exponents', () => {
    const huge = parseQuantity('1e2000000000')
    const one = parseQuantity('1')
    assert.ok(compareQuantities(huge, one) > 0 && compareQuantities(negateQuantity(huge), one) < 0)
    assert.equal(quantityText(addQuantities(huge, one)), '100e1999999998')
    assert.equal(quantityText(addQuantities(parseQuantity('1Ki'), huge)), '100e1999999998')
    assert.equal(quantityMilliValue(huge), 2 ** 63)
  })
})

/** An exact fraction: `top` / `bottom`. */
type Rational = readonly [top: bigint, bottom: bigint]

const ONE: Rational = [1n, 1n]

describe('quantities and exact rationals', () => {
  const suffixes: [string, Rational][] = [
    ['n', [1n, 10n ** 9n]],
    ['u', [1n, 10n ** 6n]],
    ['m', [1n, 1000n]],
    ['', ONE],
    ['k', [1000n, 1n]],
    ['M', [10n ** 6n, 1n]],
    ['G', [10n ** 9n, 1n]],
    ['T', [10n ** 12n, 1n]],
    ['Ki', [2n ** 10n, 1n]],
    ['Mi', [2n ** 20n, 1n]],
    ['Gi', [2n ** 30n, 1n]],
    ['e3', [1000n, 1n]],
    ['E-3', [1n, 1000n]],
  ]
  const written = fc
    .record({
      sign: fc.constantFrom('', '-', '+'),
      whole: fc.nat({ max: 10 ** 9 }),
      fraction: fc.option(fc.nat({ max: 99_999 }), { nil: undefined }),
      suffix: fc.constantFrom(...suffixes),
    })
    .map(({ sign, whole, fraction, suffix: [name, factor] }) => {
      const digits = fraction === undefined ? '' : String(fraction)
      const top = BigInt(`${whole}${digits}`) * factor[0] * (sign === '-' ? -1n : 1n)
      const exact: Rational = [top, 10n ** BigInt(digits.length) * factor[1]]
      return { text: `${sign}${whole}${digits === '' ? '' : `.${digits}`}${name}`, exact: upToNano(exact) }
    })

  it('parse to the same value, rounded up at the ninth decimal', () => {
    fc.assert(fc.property(written, ({ text, exact }) => same(parseQuantity(text), exact)))
  })

  it('survive printing and parsing', () => {
    fc.assert(
      fc.property(written, ({ text }) => {
        const { unscaled, scale, format } = parseQuantity(text)
        const printed = quantityText({ unscaled, scale, format })
        assert.equal(compareQuantities(parseQuantity(printed), { unscaled, scale, format }), 0)
        assert.equal(canonicalQuantity(printed), printed)
      }),
    )
  })

  it('add, subtract, multiply and compare alike', () => {
    fc.assert(
      fc.property(written, written, fc.maxSafeInteger(), (a, b, factor) => {
        const [left, right] = [parseQuantity(a.text), parseQuantity(b.text)]
        same(addQuantities(left, right), plus(a.exact, b.exact))
        same(subtractQuantities(left, right), plus(a.exact, [-b.exact[0], b.exact[1]]))
        same(multiplyQuantity(left, factor), [a.exact[0] * BigInt(factor), a.exact[1]])
        const cross = a.exact[0] * b.exact[1] - b.exact[0] * a.exact[1]
        assert.equal(Math.sign(compareQuantities(left, right)), cross === 0n ? 0 : cross > 0n ? 1 : -1)
      }),
    )
  })

  it('round to integers away from zero', () => {
    fc.assert(
      fc.property(written, ({ text, exact: [top, bottom] }) => {
        const expected = Number(awayFromZero(top, bottom))
        if (Math.abs(expected) < 2 ** 53) assert.equal(quantityValue(parseQuantity(text)), expected)
      }),
    )
  })
})

function same({ unscaled, scale }: Quantity, [top, bottom]: Rational): void {
  const up = 10n ** BigInt(Math.max(scale, 0))
  const down = 10n ** BigInt(Math.max(-scale, 0))
  assert.equal(BigInt(unscaled) * up * bottom, top * down)
}

function plus([a, b]: Rational, [c, d]: Rational): Rational {
  return [a * d + c * b, b * d]
}

function upToNano([top, bottom]: Rational): Rational {
  return [awayFromZero(top * 10n ** 9n, bottom), 10n ** 9n]
}

function awayFromZero(top: bigint, bottom: bigint): bigint {
  const rest = top % bottom
  return top / bottom + (rest === 0n ? 0n : rest > 0n ? 1n : -1n)
}
