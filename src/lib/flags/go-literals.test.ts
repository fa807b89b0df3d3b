import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { goQuote } from '../go-text.ts'
import {
  formatDuration,
  formatFloat,
  parseBool,
  parseDuration,
  parseFloating,
  parseInteger,
  parseUnsigned,
} from './go-literals.ts'

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
    it(`refuses ${JSON.stringify(text)}`, () => {
      assert.throws(() => parseInteger(text), { message: `strconv.ParseInt: parsing ${goQuote(text)}: invalid syntax` })
    })
  }
  it('knows the limits of its type', () => {
    assert.equal(parseInteger('-2147483648', 32), -2147483648)
    assert.throws(() => parseInteger('2147483648', 32), /value out of range/)
    assert.throws(() => parseInteger('9223372036854775808'), /value out of range/)
    assert.throws(() => parseUnsigned('4294967296', 32), /strconv.ParseUint: parsing "4294967296": value out of range/)
    assert.throws(() => parseUnsigned('+1'), /invalid syntax/)
  })
  it('refuses numbers that would lose digits', () => {
    assert.equal(parseInteger('9007199254740991'), Number.MAX_SAFE_INTEGER)
    assert.throws(() => parseInteger('9007199254740993'), /value out of range/)
  })
})

describe('parseBool', () => {
  it('accepts exactly what Go accepts', () => {
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
    it(`refuses ${JSON.stringify(text)}`, () => assert.throws(() => parseFloating(text), /invalid syntax/))
  }
  it('refuses what is too large', () => assert.throws(() => parseFloating('1e400'), /value out of range/))
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

describe('parseDuration', () => {
  for (const [text, ms] of [
    ['1.5h', 5_400_000],
    ['1h30m', 5_400_000],
    ['-1m', -60_000],
    ['+5s', 5_000],
    ['.5s', 500],
    ['1.s', 1_000],
    ['0', 0],
    ['-0', 0],
    ['1us', 0.001],
    ['1µs', 0.001],
    ['100ms', 100],
  ] as const) {
    it(`reads ${text}`, () => assert.equal(parseDuration(text), ms))
  }
  for (const [text, message] of [
    ['5', 'time: missing unit in duration "5"'],
    ['x', 'time: invalid duration "x"'],
    ['5x', 'time: unknown unit "x" in duration "5x"'],
    ['.s', 'time: invalid duration ".s"'],
    ['3000000h', 'time: invalid duration "3000000h"'],
    ['1e3s', 'time: unknown unit "e" in duration "1e3s"'],
    ['1h 5m', 'time: unknown unit "h " in duration "1h 5m"'],
    ['', 'time: invalid duration ""'],
    ['1.2.3s', 'time: missing unit in duration "1.2.3s"'],
    ['1ms2', 'time: missing unit in duration "1ms2"'],
    ['10000000000000000000ns', 'time: invalid duration "10000000000000000000ns"'],
    ['9223372036854775808ns', 'time: invalid duration "9223372036854775808ns"'],
    ['\0é', String.raw`time: invalid duration "\x00\xc3\xa9"`],
  ] as const) {
    it(`refuses ${JSON.stringify(text)}`, () => assert.throws(() => parseDuration(text), { message }))
  }
})

describe('parseDuration of very long numbers', () => {
  it('ignores leading zeros', () => assert.equal(parseDuration(`${'0'.repeat(100_000)}7s`), 7000))
  it('cuts fractions', () => assert.equal(parseDuration(`0.${'9'.repeat(100_000)}s`), 999.999999))
})

describe('formatDuration', () => {
  for (const [ms, text] of [
    [0, '0s'],
    [90_000, '1m30s'],
    [3_600_000, '1h0m0s'],
    [1_500, '1.5s'],
    [100, '100ms'],
    [0.0015, '1.5µs'],
    [0.000001, '1ns'],
    [-60_000, '-1m0s'],
  ] as const) {
    it(`writes ${text}`, () => assert.equal(formatDuration(ms), text))
  }

  it('is read back by parseDuration', () => {
    fc.assert(fc.property(fc.integer(), (ms) => assert.equal(parseDuration(formatDuration(ms)), ms)))
  })
})
