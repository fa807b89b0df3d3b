import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { durationMs, durationOfMs, durationText, parseDuration } from './duration.ts'

describe('Go duration in nanoseconds', () => {
  for (const [text, canonical] of [
    ['0', '0s'],
    ['-0', '0s'],
    ['1h30m', '1h30m0s'],
    ['90s', '1m30s'],
    ['1.5h', '1h30m0s'],
    ['.5s', '500ms'],
    ['1.s', '1s'],
    ['1us', '1\u00b5s'],
    ['1\u03bcs', '1\u00b5s'],
    ['1500us', '1.5ms'],
    ['1ns', '1ns'],
    ['-1m0.000000001s', '-1m0.000000001s'],
    ['2540400h10m10.000000000s', '2540400h10m10s'],
    ['9223372036854775807ns', '2562047h47m16.854775807s'],
    ['-9223372036854775808ns', '-2562047h47m16.854775808s'],
    ['7m12s', '7m12s'],
  ] as const) {
    it(`is parsed from ${text}`, () => assert.equal(durationText(parseDuration(text)), canonical))
  }

  for (const [text, message] of [
    ['', 'time: invalid duration ""'],
    ['-', 'time: invalid duration "-"'],
    ['x', 'time: invalid duration "x"'],
    ['.s', 'time: invalid duration ".s"'],
    ['1', 'time: missing unit in duration "1"'],
    ['1h2', 'time: missing unit in duration "1h2"'],
    ['1d', 'time: unknown unit "d" in duration "1d"'],
    ['1 s', 'time: unknown unit " s" in duration "1 s"'],
    ['9223372036854775808ns', 'time: invalid duration "9223372036854775808ns"'],
    ['3000000h', 'time: invalid duration "3000000h"'],
    ['99999999999999999999s', 'time: invalid duration "99999999999999999999s"'],
  ] as const) {
    it(`is rejected: "${text}"`, () => assert.throws(() => parseDuration(text), { message }))
  }

  it('survives printing and parsing', () => {
    const nanos = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    fc.assert(fc.property(nanos, (value) => assert.equal(parseDuration(durationText(value)), value)))
  })

  it('converts to milliseconds', () => {
    assert.equal(durationMs('1m0.5s'), 60_500)
    assert.equal(durationOfMs(90_000), '1m30s')
  })
})

describe('durationMs', () => {
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
    it(`reads ${text}`, () => assert.equal(durationMs(text), ms))
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
    it(`rejects ${JSON.stringify(text)}`, () => assert.throws(() => durationMs(text), { message }))
  }
})

describe('durationMs of very long numbers', () => {
  it('ignores leading zeros', () => assert.equal(durationMs(`${'0'.repeat(100_000)}7s`), 7000))
  it('rounds fractions as Go does', () => assert.equal(durationMs(`0.${'9'.repeat(100_000)}s`), 1000))
})

describe('durationOfMs', () => {
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
    it(`writes ${text}`, () => assert.equal(durationOfMs(ms), text))
  }

  it('is read back by durationMs', () => {
    fc.assert(fc.property(fc.integer(), (ms) => assert.equal(durationMs(durationOfMs(ms)), ms)))
  })
})
