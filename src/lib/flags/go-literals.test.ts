import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { goQuote } from '../go/text.ts'
import { formatFloat, parseBool, parseFloating, parseInteger, parseUnsigned } from './go-literals.ts'

// Expectations are the output of Go's own strconv and time.

describe('parseInteger', () => {
  for (const [text, value] of [
    ['1_000', 1000],
    ['0x_1F', 31],
    ['0_7', 7],
    ['-0x10', -16],
    ['+5', 5],
    ['0', 0],
    ['010', 8],
    ['0b101', 5],
    ['0o17', 15],
  ] as const) {
    it(`reads ${text}`, () => assert.equal(parseInteger(text), value))
  }
  for (const text of ['08', '1__0', '', '0b12', '1_', '_1', '0x', ' 1', '1.5', 'é']) {
    it(`rejects "${text}"`, () => {
      assert.throws(() => parseInteger(text), { message: `strconv.ParseInt: parsing ${goQuote(text)}: invalid syntax` })
    })
  }
  it('rejects numbers out of the range of its type', () => {
    assert.equal(parseInteger('-2147483648', 32), -2147483648)
    assert.throws(() => parseInteger('2147483648', 32), /value out of range/)
    assert.throws(() => parseInteger('9223372036854775808'), /value out of range/)
    assert.throws(() => parseUnsigned('4294967296', 32), /strconv.ParseUint: parsing "4294967296": value out of range/)
    assert.throws(() => parseUnsigned('+1'), /invalid syntax/)
  })
  it('rejects numbers that would lose digits', () => {
    assert.equal(parseInteger('9007199254740991'), Number.MAX_SAFE_INTEGER)
    assert.throws(() => parseInteger('9007199254740993'), /value out of range/)
  })
})

describe('parseBool', () => {
  it('accepts exactly the texts that Go accepts', () => {
    assert.deepEqual(
      ['1', 't', 'T', 'TRUE', 'true', 'True'].map(parseBool),
      Array.from({ length: 6 }, () => true),
    )
    assert.deepEqual(
      ['0', 'f', 'F', 'FALSE', 'false', 'False'].map(parseBool),
      Array.from({ length: 6 }, () => false),
    )
    for (const text of ['yes', 'tRUE', '', 'on']) assert.throws(() => parseBool(text), /strconv.ParseBool/)
  })
})

describe('parseFloating', () => {
  for (const [text, value] of [
    ['1_000.5', 1000.5],
    ['1.', 1],
    ['-.5', -0.5],
    ['1e3', 1000],
    ['Inf', Infinity],
    ['-infinity', -Infinity],
    ['nan', Number.NaN],
  ] as const) {
    it(`reads ${text}`, () => assert.equal(parseFloating(text), value))
  }
  for (const text of ['.', '', 'x', '1e', '1_.5', '0x1p4', ' 1']) {
    it(`rejects "${text}"`, () => assert.throws(() => parseFloating(text), /invalid syntax/))
  }
  it('rejects numbers that are too large', () => assert.throws(() => parseFloating('1e400'), /value out of range/))
})

describe('formatFloat', () => {
  for (const [value, text] of [
    [1e6, '1e+06'],
    [123456789, '1.23456789e+08'],
    [1e20, '1e+20'],
    [1.5e-5, '1.5e-05'],
    [0.0001, '0.0001'],
    [100000, '100000'],
    [50, '50'],
    [0.1, '0.1'],
    [0, '0'],
    [-2.5, '-2.5'],
  ] as const) {
    it(`writes ${text}`, () => assert.equal(formatFloat(value), text))
  }
})
