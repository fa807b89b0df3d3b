import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import {
  canonicalMicroTime,
  canonicalTime,
  epochMsOf,
  instantOf,
  isZeroTime,
  microTimeOf,
  microTimeText,
  parseLocalTime,
  parseMicroTime,
  parseTime,
  timeOf,
  timeText,
} from './time.ts'

describe('parseTime()', () => {
  for (const [text, canonical] of [
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05Z'],
    ['2026-01-02T03:04:05.999999999Z', '2026-01-02T03:04:05Z'],
    ['2026-01-02T03:04:05,5+01:00', '2026-01-02T02:04:05Z'],
    ['2026-01-02T3:04:05-07:30', '2026-01-02T10:34:05Z'],
    ['2024-02-29T00:00:00+24:00', '2024-02-28T00:00:00Z'],
    ['0000-01-01T00:00:00+01:00', '-0001-12-31T23:00:00Z'],
    ['9999-12-31T23:59:59-01:00', '10000-01-01T00:59:59Z'],
    ['0099-12-31T00:00:00Z', '0099-12-31T00:00:00Z'],
  ] as const) {
    it(`parses ${text}`, () => assert.equal(canonicalTime(text), canonical))
  }

  const layout = '"2006-01-02T15:04:05Z07:00"'
  for (const [text, message] of [
    ['x', `parsing time "x" as ${layout}: cannot parse "x" as "2006"`],
    ['', `parsing time "" as ${layout}: cannot parse "" as "2006"`],
    ['2026-1-02T03:04:05Z', `parsing time "2026-1-02T03:04:05Z" as ${layout}: cannot parse "1-02T03:04:05Z" as "01"`],
    ['2026-01-02 03:04:05Z', `parsing time "2026-01-02 03:04:05Z" as ${layout}: cannot parse " 03:04:05Z" as "T"`],
    ['2026-01-02T03:04:05', `parsing time "2026-01-02T03:04:05" as ${layout}: cannot parse "" as "Z07:00"`],
    [
      '2026-01-02T03:04:05é',
      `parsing time "2026-01-02T03:04:05\\xc3\\xa9" as ${layout}: cannot parse "\\xc3\\xa9" as "Z07:00"`,
    ],
    ['2026-13-02T03:04:05Z', 'parsing time "2026-13-02T03:04:05Z": month out of range'],
    ['2026-02-29T03:04:05Z', 'parsing time "2026-02-29T03:04:05Z": day out of range'],
    ['2026-01-02T24:04:05Z', 'parsing time "2026-01-02T24:04:05Z": hour out of range'],
    ['2026-01-02T03:04:60Z', 'parsing time "2026-01-02T03:04:60Z": second out of range'],
    ['2026-01-02T03:04:05+25:00', 'parsing time "2026-01-02T03:04:05+25:00": time zone offset hour out of range'],
    ['2026-01-02T03:04:05Zx', 'parsing time "2026-01-02T03:04:05Zx": extra text: "x"'],
  ] as const) {
    it(`rejects "${text}"`, () => assert.throws(() => parseTime(text), { message }))
  }

  it('parses its own output', () => {
    const years = { min: new Date('0001-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }
    fc.assert(
      fc.property(fc.date(years), (date) => {
        assert.equal(epochMsOf(timeOf(date.getTime())), Math.floor(date.getTime() / 1000) * 1000)
        assert.equal(epochMsOf(microTimeOf(date.getTime())), date.getTime())
        assert.equal(timeOf(date.getTime()).slice(0, -1), date.toISOString().slice(0, 19))
      }),
    )
  })

  it("returns undefined for Go's zero time", () => {
    assert.equal(canonicalTime('0001-01-01T00:00:00Z'), undefined)
    assert.equal(canonicalMicroTime('0001-01-01T00:00:00.000000Z'), undefined)
    assert.ok(!isZeroTime(instantOf(0)))
  })
})

describe('MicroTime', () => {
  it('has exactly six fractional digits', () => {
    assert.equal(canonicalMicroTime('2026-01-02T03:04:05.123456+00:01'), '2026-01-02T03:03:05.123456Z')
    assert.equal(microTimeText({ seconds: 0, nanos: 1999 }), '1970-01-01T00:00:00.000001Z')
    assert.equal(timeText({ seconds: -1, nanos: 5 }), '1969-12-31T23:59:59Z')
    const layout = '"2006-01-02T15:04:05.000000Z07:00"'
    assert.throws(() => parseMicroTime('2026-01-02T03:04:05Z'), {
      message: `parsing time "2026-01-02T03:04:05Z" as ${layout}: cannot parse "Z" as ".000000"`,
    })
    assert.throws(() => parseMicroTime('2026-01-02T03:04:05.1234567Z'), {
      message: `parsing time "2026-01-02T03:04:05.1234567Z" as ${layout}: cannot parse "7Z" as "Z07:00"`,
    })
  })
})

describe('parseLocalTime()', () => {
  it("rejects a time zone, with Go's text", () => {
    assert.equal(timeText(parseLocalTime('2026-01-02T03:04:05.5')), '2026-01-02T03:04:05Z')
    const layout = '"2006-01-02T15:04:05"'
    assert.throws(() => parseLocalTime('x'), { message: `parsing time "x" as ${layout}: cannot parse "x" as "2006"` })
    assert.throws(() => parseLocalTime('2026-01-02T03:04:05Z'), {
      message: 'parsing time "2026-01-02T03:04:05Z": extra text: "Z"',
    })
  })
})
