import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import {
  byteLength,
  compareText,
  goJson,
  goNumber,
  goQuote,
  goStrings,
  goTimeQuote,
  isPrintable,
  parseGoInt,
} from './text.ts'

describe('goQuote()', () => {
  for (const [text, quoted] of [
    ['', '""'],
    ['plain text', '"plain text"'],
    ['a"b\\c', '"a\\"b\\\\c"'],
    ['\x07\b\f\n\r\t\v', '"\\a\\b\\f\\n\\r\\t\\v"'],
    ['\0\x1f\x7f', '"\\x00\\x1f\\x7f"'],
    ['é \u{1F600}', '"é \u{1F600}"'],
    ['\u00a0\u200b\u2028', '"\\u00a0\\u200b\\u2028"'],
    ['\u{10FFFF}', '"\\U0010ffff"'],
    ['\ud800', '"\\ufffd"'],
  ] as const) {
    it(`writes ${JSON.stringify(text)} as ${quoted}`, () => assert.equal(goQuote(text), quoted))
  }

  it('formats lists as Go source, and times as bytes', () => {
    assert.equal(goStrings(['a', 'b"']), '[]string{"a", "b\\""}')
    assert.equal(goTimeQuote('a"\\é\n\x7f'), '"a\\"\\\\\\xc3\\xa9\\x0a\x7f"')
  })
})

describe('goJson() for text', () => {
  it('escapes HTML characters, and writes bigints as numbers', () => {
    assert.equal(
      goJson({ '<': ['&', '>'], n: 2n ** 63n - 1n }),
      '{"\\u003c":["\\u0026","\\u003e"],"n":9223372036854775807}',
    )
    assert.equal(goJson('\u2028'), '"\\u2028"')
    assert.equal(goJson(undefined), 'null')
  })
})

describe('goNumber() for text', () => {
  for (const [value, text] of [
    [0, '0'],
    [-7, '-7'],
    [2n ** 63n, '9223372036854775808'],
    [1e21, '1e+21'],
    [1.5, '1.5'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [123456789.5, '1.234567895e+08'],
    [Number.NaN, 'NaN'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
  ] as const) {
    it(`writes ${text}`, () => assert.equal(goNumber(value), text))
  }
})

describe('compareText()', () => {
  it('orders by UTF-8 bytes', () => {
    const unit = fc.string({ unit: 'binary' })
    fc.assert(
      fc.property(unit, unit, (a, b) => {
        const [left, right] = [a.toWellFormed(), b.toWellFormed()]
        assert.equal(Math.sign(compareText(left, right)), Buffer.compare(Buffer.from(left), Buffer.from(right)))
      }),
    )
    assert.ok(compareText('\uffff', '\u{1F600}') < 0)
    assert.equal(byteLength('é'), 2)
    assert.ok(isPrintable('é') && isPrintable(' ') && !isPrintable('\u00a0'))
  })
})

describe('parseGoInt()', () => {
  it('parses numbers as strconv does', () => {
    assert.equal(parseGoInt('+12'), 12)
    assert.equal(parseGoInt('-0'), 0)
    assert.equal(parseGoInt('9223372036854775807'), 2 ** 63)
    assert.equal(parseGoInt(`${'0'.repeat(30)}5`), 5)
  })

  it("rejects invalid numbers with strconv's errors", () => {
    const cases: [string, [name?: string, bits?: number], string][] = [
      ['abc', [], 'strconv.ParseInt: parsing "abc": invalid syntax'],
      ['', [], 'strconv.ParseInt: parsing "": invalid syntax'],
      ['9223372036854775808', [], 'strconv.ParseInt: parsing "9223372036854775808": value out of range'],
      ['2147483648', ['ParseInt', 32], 'strconv.ParseInt: parsing "2147483648": value out of range'],
      ['1_0', ['Atoi'], 'strconv.Atoi: parsing "1_0": invalid syntax'],
    ]
    for (const [text, args, message] of cases) assert.throws(() => parseGoInt(text, ...args), { message })
  })
})
