/** Tests how events of a cluster are grouped by minute and object, filtered and counted. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Event } from '#apis/core/v1.ts'

import { activityOf, choicesOf, type EventFilter, minutesOf } from './minutes.ts'

const ALL: EventFilter = { kind: '', reason: '', isWarning: false }

function event(time: string, name: string, more: object = {}): Event {
  return {
    metadata: { uid: `${time}${name}` },
    involvedObject: { kind: 'Pod', namespace: 'shop', name },
    lastTimestamp: `2026-01-02T03:${time}Z`,
    reason: 'Started',
    type: 'Normal',
    ...more,
  } as Event
}

const EVENTS = [
  event('04:10', 'web'),
  event('05:01', 'web'),
  event('05:30', 'db', { type: 'Warning', reason: 'BackOff' }),
  event('05:40', 'web', { reason: 'Killing' }),
]

describe('minutesOf()', () => {
  const shape = (events: readonly Event[], filter = ALL): unknown =>
    minutesOf(events, filter).map(({ startMs, objects }) => [
      new Date(startMs).toISOString().slice(14, 16),
      objects.map(({ ref, moments }) => `${ref.name} ${moments.length}`),
    ])

  it('has the newest minute and the newest object of it first', () => {
    assert.deepEqual(shape(EVENTS), [
      ['05', ['web 2', 'db 1']],
      ['04', ['web 1']],
    ])
  })

  it('filters by kind, reason and warnings', () => {
    assert.deepEqual(shape(EVENTS, { ...ALL, isWarning: true }), [['05', ['db 1']]])
    assert.deepEqual(shape(EVENTS, { ...ALL, reason: 'Killing' }), [['05', ['web 1']]])
    assert.deepEqual(shape(EVENTS, { ...ALL, kind: 'Node' }), [])
  })

  it('keeps events without a valid time, and objects whose names contain separators', () => {
    const broken = event('xx', 'a/b')
    const [minute] = minutesOf([broken, { ...broken, involvedObject: undefined } as never], ALL)
    assert.equal(minute?.startMs, 0)
    assert.equal(minute?.objects.length, 2)
  })
})

describe('activityOf()', () => {
  it('counts events and warnings of each minute, the oldest first', () => {
    const activity = activityOf(minutesOf(EVENTS, ALL), Date.parse('2026-01-02T03:06:59Z'), 3)
    assert.deepEqual(
      activity.map(({ normal, warnings }) => [normal, warnings]),
      [
        [1, 0],
        [2, 1],
        [0, 0],
      ],
    )
  })
})

describe('choicesOf()', () => {
  it('names each kind and reason once', () => {
    assert.deepEqual(choicesOf(EVENTS), { kinds: ['Pod'], reasons: ['BackOff', 'Killing', 'Started'] })
  })
})
