import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import {
  ageText,
  durationMs,
  durationOfMs,
  durationText,
  humanDuration,
  parseDuration,
  shortHumanDuration,
} from './duration.ts'

describe('Go durations', () => {
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
    it(`reads ${text}`, () => assert.equal(durationText(parseDuration(text)), canonical))
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
    it(`refuses "${text}"`, () => assert.throws(() => parseDuration(text), { message }))
  }

  it('print what parses to the same', () => {
    const nanos = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    fc.assert(fc.property(nanos, (value) => assert.equal(parseDuration(durationText(value)), value)))
  })

  it('convert to milliseconds', () => {
    assert.equal(durationMs('1m0.5s'), 60_500)
    assert.equal(durationOfMs(90_000), '1m30s')
  })
})

describe('durations for people', () => {
  const [S, M, H, D, Y] = [1000, 60_000, 3_600_000, 86_400_000, 365 * 86_400_000]
  for (const [ms, long, short] of [
    [-3 * S, '<invalid>', '<invalid>'],
    [-1 * S, '0s', '0s'],
    [0, '0s', '0s'],
    [119 * S, '119s', '1m'],
    [2 * M, '2m', '2m'],
    [5 * M + 30 * S, '5m30s', '5m'],
    [10 * M + 30 * S, '10m', '10m'],
    [179 * M, '179m', '2h'],
    [3 * H + 12 * M, '3h12m', '3h'],
    [8 * H + 12 * M, '8h', '8h'],
    [47 * H, '47h', '1d'],
    [2 * D, '2d', '2d'],
    [2 * D + 4 * H, '2d4h', '2d'],
    [8 * D + 4 * H, '8d', '8d'],
    [2 * Y - D, '729d', '1y'],
    [2 * Y, '2y', '2y'],
    [2 * Y + 34 * D, '2y34d', '2y'],
    [8 * Y + 34 * D, '8y', '8y'],
  ] as const) {
    it(`shows ${ms} ms as ${long} and ${short}`, () => {
      assert.equal(humanDuration(ms), long)
      assert.equal(shortHumanDuration(ms), short)
    })
  }

  it('shows ages', () => {
    assert.equal(ageText('2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1, 0, 5)), '5m')
    assert.equal(ageText(undefined, 0), '<unknown>')
  })
})
