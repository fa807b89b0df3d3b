import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'

import fc from 'fast-check'

import { isTimeZone, nextChange, offsetAt } from './time-zone.ts'

const HOUR_MS = 3_600_000

test('time zone names are case-sensitive', () => {
  for (const name of ['Europe/Berlin', 'America/Argentina/Ushuaia', 'Asia/Kolkata', 'US/Eastern', 'Etc/GMT+5', 'CET']) {
    assert.ok(isTimeZone(name), name)
  }
  for (const name of ['europe/berlin', 'Europe/berlin', 'us/eastern', 'Nowhere', '+05:00', 'Factory', 'etc/gmt+5']) {
    assert.ok(!isTimeZone(name), name)
  }
  assert.throws(() => offsetAt('Nowhere', 0), RangeError)
})

describe('time zone transitions', () => {
  const changes: [zone: string, from: string, change: string, before: number, after: number][] = [
    ['Europe/Berlin', '2026-01-01T00:00:00Z', '2026-03-29T01:00:00Z', 1, 2],
    ['America/New_York', '2026-07-01T00:00:00Z', '2026-11-01T06:00:00Z', -4, -5],
    ['Australia/Lord_Howe', '2026-01-01T00:00:00Z', '2026-04-04T15:00:00Z', 11, 10.5],
    // A Friday that never was.
    ['Pacific/Apia', '2011-12-01T00:00:00Z', '2011-12-30T10:00:00Z', -10, 14],
  ]
  for (const [zone, from, change, before, after] of changes) {
    it(`include ${change} as the next one for ${zone}`, () => {
      const fromMs = Date.parse(from)
      const found = nextChange(zone, fromMs, fromMs + 365 * 24 * HOUR_MS)
      assert.equal(new Date(found ?? 0).toISOString(), new Date(change).toISOString())
      assert.deepEqual(
        [offsetAt(zone, (found ?? 0) - 1), offsetAt(zone, found ?? 0)],
        [before * HOUR_MS, after * HOUR_MS],
      )
      assert.equal(nextChange(zone, fromMs, (found ?? 0) - 1), undefined)
      assert.equal(nextChange(zone, fromMs, found ?? 0), found)
    })
  }

  it('agree with Temporal where it is available', (t) => {
    if (typeof Temporal === 'undefined') return t.skip('this Node has no Temporal')
    const zones = fc.constantFrom(
      'UTC',
      'America/New_York',
      'Europe/Dublin',
      'Asia/Kolkata',
      'Africa/Casablanca',
      'US/Samoa',
    )
    const moments = fc.integer({ min: Date.UTC(1990, 0), max: Date.UTC(2037, 0) })
    fc.assert(
      fc.property(zones, moments, (zone, ms) => {
        const moment = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone)
        assert.equal(offsetAt(zone, ms), moment.offsetNanoseconds / 1e6)
        const next = moment.getTimeZoneTransition('next')?.epochMilliseconds ?? Infinity
        const untilMs = ms + 300 * 24 * HOUR_MS
        assert.equal(nextChange(zone, ms, untilMs), next <= untilMs ? next : undefined)
      }),
    )
  })
})
