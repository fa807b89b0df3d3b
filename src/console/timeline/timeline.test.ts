/** Tests which events belong to an object, and their order. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Event } from '#apis/core/v1.ts'

import { eventQuery } from './belongs.ts'
import { timelineOf } from './timeline.ts'

const OWNERS: readonly (readonly [kind: string, child: string, name: string, belongs: boolean])[] = [
  ['Deployment', 'ReplicaSet', 'web-7887448d46', true],
  ['Deployment', 'Pod', 'web-7887448d46-4b86z', true],
  ['Deployment', 'Pod', 'web-api-7887448d46-4b86z', false],
  ['Deployment', 'ReplicaSet', 'web-api-7887448d46', false],
  ['StatefulSet', 'Pod', 'web-12', true],
  ['StatefulSet', 'Pod', 'web-api-0', false],
  ['Job', 'Pod', 'web-0-4b86z', true],
  ['CronJob', 'Job', 'web-29384756', true],
  ['CronJob', 'Pod', 'web-29384756-4b86z', true],
]

describe('eventQuery()', () => {
  for (const [kind, child, name, belongs] of OWNERS) {
    it(`${belongs ? 'keeps' : 'drops'} events of ${child} ${name} for ${kind} web`, () => {
      const { keep } = eventQuery({ kind, metadata: { name: 'web', namespace: 'a', uid: 'u' } })
      const event = { metadata: {}, involvedObject: { kind: child, name, uid: 'other' } } as Event
      assert.equal(keep?.(event), belongs)
    })
  }

  it('filters events on the server if the object has no children', () => {
    const { path, keep } = eventQuery({ kind: 'Pod', metadata: { name: 'p', namespace: 'a', uid: 'u' } })
    assert.equal(path, '/api/v1/namespaces/a/events?fieldSelector=involvedObject.uid%3Du')
    assert.equal(keep, undefined)
  })
})

describe('timelineOf()', () => {
  it('orders events by last occurrence, then by resourceVersion, and marks the first event of each day', () => {
    const event = (name: string, lastTimestamp: string, resourceVersion: string): Event =>
      ({ metadata: { name, resourceVersion }, involvedObject: {}, lastTimestamp }) as Event
    const events = [
      event('a', '2026-01-01T12:00:00Z', '1'),
      event('b', '2026-01-03T12:00:00Z', '2'),
      event('c', '2026-01-03T12:00:00Z', '3'),
    ]
    const moments = timelineOf(events).map(({ event: { metadata }, isNewDay }) => [metadata.name, isNewDay])
    assert.deepEqual(moments, [
      ['c', true],
      ['b', false],
      ['a', true],
    ])
  })
})
