import assert from 'node:assert/strict'
import { test } from 'node:test'

import fc from 'fast-check'

import { checkTimeZone, nextTime, parseCron } from './cron.ts'

const ms = (text: string): number => Date.parse(text)
const shown = (time: number | undefined): string =>
  time === undefined ? 'never' : new Date(time).toISOString().replace('.000Z', 'Z')

test('a cron schedule fires next at the first minute that matches', () => {
  const table: readonly (readonly [schedule: string, after: string, next: string])[] = [
    ['* * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z'],
    ['* * * * *', '2026-01-01T00:00:59.999Z', '2026-01-01T00:01:00Z'],
    ['*/15 * * * *', '2026-01-01T00:16:00Z', '2026-01-01T00:30:00Z'],
    ['5/20 * * * *', '2026-01-01T00:26:00Z', '2026-01-01T00:45:00Z'],
    ['0 9-17 * * mon-FRI', '2026-01-02T17:00:00Z', '2026-01-05T09:00:00Z'],
    ['0 0 13 * 5', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'],
    ['0 0 13 * *', '2026-01-01T00:00:00Z', '2026-01-13T00:00:00Z'],
    ['0 0 */2 * 5', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'],
    ['0 0 ? * 5', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'],
    ['30 4 1,15 jan,DEC *', '2026-01-15T04:30:00Z', '2026-12-01T04:30:00Z'],
    ['0 0 29 2 *', '2026-01-01T00:00:00Z', '2028-02-29T00:00:00Z'],
    ['0 0 30 2 *', '2026-01-01T00:00:00Z', 'never'],
    [', * * * *', '2026-01-01T00:00:00Z', 'never'],
    ['@hourly', '2026-01-01T00:30:00Z', '2026-01-01T01:00:00Z'],
    ['@daily', '2026-01-01T00:30:00Z', '2026-01-02T00:00:00Z'],
    ['@midnight', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'],
    ['@weekly', '2026-01-01T00:30:00Z', '2026-01-04T00:00:00Z'],
    ['@monthly', '2026-01-01T00:30:00Z', '2026-02-01T00:00:00Z'],
    ['@yearly', '2026-01-01T00:30:00Z', '2027-01-01T00:00:00Z'],
    ['@annually', '2025-12-31T23:59:59Z', '2026-01-01T00:00:00Z'],
    ['@every 90s', '2026-01-01T00:00:00.700Z', '2026-01-01T00:01:30Z'],
    ['@every 1.7s', '2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z'],
    ['@every 1ms', '2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z'],
    ['CRON_TZ=Asia/Tokyo 0 6 * * *', '2026-01-01T00:00:00Z', '2026-01-01T21:00:00Z'],
    ['TZ=UTC @daily', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'],
  ]
  for (const [schedule, after, next] of table) {
    assert.equal(shown(nextTime(parseCron(schedule), ms(after))), next, `${schedule} after ${after}`)
  }
})

test('a cron schedule skips times when the clock is set forward, and repeats them when it is set back', () => {
  const after = (schedule: string, zone: string, start: string, count: number): string[] => {
    const times: string[] = []
    for (let at: number | undefined = ms(start); times.length < count;) {
      at = nextTime(parseCron(schedule), at ?? 0, zone)
      times.push(shown(at))
      if (at === undefined) break
    }
    return times
  }
  // In New York 02:00 to 03:00 of 8 March 2026 does not exist, and 01:00 to 02:00 of 1 November comes twice.
  assert.deepEqual(after('30 2 * * *', 'America/New_York', '2026-03-07T12:00:00Z', 2), [
    '2026-03-09T06:30:00Z',
    '2026-03-10T06:30:00Z',
  ])
  assert.deepEqual(after('30 1 * * *', 'America/New_York', '2026-10-31T12:00:00Z', 3), [
    '2026-11-01T05:30:00Z',
    '2026-11-01T06:30:00Z',
    '2026-11-02T06:30:00Z',
  ])
  assert.deepEqual(after('0 * * * *', 'America/New_York', '2026-03-08T06:30:00Z', 2), [
    '2026-03-08T07:00:00Z',
    '2026-03-08T08:00:00Z',
  ])
  // Beirut begins its summer at midnight: the Sunday has no 00:00 and still is a Sunday.
  assert.deepEqual(after('0 8 * * 0', 'Asia/Beirut', '2024-03-28T00:00:00Z', 1), ['2024-03-31T05:00:00Z'])
  // Lord Howe Island sets its clocks by half an hour.
  assert.deepEqual(after('0 3 1 10 *', 'Australia/Lord_Howe', '2023-06-01T00:00:00Z', 1), ['2023-09-30T16:00:00Z'])
})

test("invalid cron schedules cause robfig/cron's errors", () => {
  const table: readonly (readonly [string, string])[] = [
    ['', 'empty spec string'],
    ['* * * *', 'expected exactly 5 fields, found 4: [* * * *]'],
    ['0 * * * * *', 'expected exactly 5 fields, found 6: [0 * * * * *]'],
    ['60 * * * *', 'end of range (60) above maximum (59): 60'],
    ['* * 0 * *', 'beginning of range (0) below minimum (1): 0'],
    ['* * * * 7', 'end of range (7) above maximum (6): 7'],
    ['30-10 * * * *', 'beginning of range (30) beyond end of range (10): 30-10'],
    ['*/0 * * * *', 'step of range should be a positive number: */0'],
    ['*/-2 * * * *', 'negative number (-2) not allowed: -2'],
    ['1-2-3 * * * *', 'too many hyphens: 1-2-3'],
    ['1/2/3 * * * *', 'too many slashes: 1/2/3'],
    ['x * * * *', 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
    [
      '99999999999999999999 * * * *',
      'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": value out of range',
    ],
    ['@sometimes', 'unrecognized descriptor: @sometimes'],
    ['@every', 'unrecognized descriptor: @every'],
    ['@every x', 'failed to parse duration @every x: time: invalid duration "x"'],
    ['TZ=Nowhere * * * * *', 'provided bad location Nowhere: unknown time zone Nowhere'],
    ['TZ=UTC', 'invalid schedule format: nothing follows the time zone'],
  ]
  for (const [schedule, message] of table) {
    assert.throws(() => parseCron(schedule), { message }, schedule)
  }
})

test('parseCron() caches expressions and rejects overlong ones', () => {
  assert.deepEqual(parseCron(`${'0-58/2,'.repeat(100_000)}1 * * * *`), parseCron('0-58/2,1 * * * *'))
  const distinct = Array.from({ length: 2001 }, (_, n) => `${'0'.repeat(n)}1`).join(',')
  assert.throws(() => parseCron(`${distinct} * * * *`), { message: 'too many expressions in a field: 2001' })
  assert.throws(() => parseCron(`@every ${'1h'.repeat(1000)}`), {
    message: 'failed to parse duration: it has 2007 characters',
  })
})

test('the time zone of a cron schedule has an exact IANA name', () => {
  for (const name of ['', 'UTC', 'Europe/Berlin', 'US/Eastern', 'Etc/GMT+5', 'EST5EDT']) checkTimeZone(name)
  for (const name of ['europe/berlin', 'Nowhere', '+01:00', 'Local']) {
    assert.throws(() => checkTimeZone(name), { message: `unknown time zone ${name}` })
  }
  assert.throws(() => checkTimeZone('../etc/passwd'), { message: 'time: invalid location name' })
})

test('a cron schedule never skips a minute that matches', () => {
  const field = (least: number, most: number): fc.Arbitrary<string> =>
    fc.oneof(fc.constant('*'), fc.integer({ min: least, max: most }).map(String), fc.constant('*/7'))
  const schedules = fc
    .tuple(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6))
    .map((fields) => parseCron(fields.join(' ')))
  const zones = fc.constantFrom('UTC', 'America/New_York', 'Europe/Dublin', 'Asia/Kolkata', 'Pacific/Apia')
  const starts = fc.integer({ min: ms('2020-01-01T00:00:00Z'), max: ms('2027-01-01T00:00:00Z') })
  fc.assert(
    fc.property(schedules, zones, starts, (schedule, zone, start) => {
      const next = nextTime(schedule, start, zone)
      if (next === undefined) return
      assert.ok(next > start)
      assert.equal(next % 60_000, 0)
      const between = Math.floor((start + next) / 2)
      assert.equal(nextTime(schedule, between, zone), next)
    }),
    { numRuns: 200 },
  )
})
