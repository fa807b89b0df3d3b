/** Tests the queue of the event recorder while the server is slow. Integration tests cover the rest. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Event } from '#apis/core/v1.ts'
import { activeCauses, withCauses } from '#lib/causes.ts'
import { createVirtualClock } from '#lib/clock.ts'

import type { ApiClient } from '../api-client.ts'
import { EventRecorder } from './event-recorder.ts'

/** A server that answers on demand. */
function createWorld() {
  const clock = createVirtualClock(Date.UTC(2026, 0, 1))
  const gate = Promise.withResolvers<void>()
  const made: Event[] = []
  const causes: (readonly string[])[] = []
  const client = {
    clock,
    async create(_: unknown, event: Event) {
      made.push(event)
      causes.push(activeCauses())
      await gate.promise
      return event
    },
  } as unknown as ApiClient
  const recorder = new EventRecorder({ client, source: { component: 'tester' } })
  const say = (about: string): void =>
    recorder.record({ kind: 'Pod', name: about, uid: about }, { type: 'Normal', reason: 'Pulled', message: 'so' })
  return { clock, made, causes, say, answer: () => (gate.resolve(), recorder.flush()) }
}

describe('EventRecorder with a slow server', () => {
  it('merges repeats of a queued event and keeps its first and last time', async () => {
    const { clock, made, say, answer } = createWorld()
    say('other')
    say('web')
    await clock.advance(3000)
    say('web')
    await answer()
    const writtenEvents = made.map(({ involvedObject, count, firstTimestamp, lastTimestamp }) => [
      involvedObject.name,
      count,
      firstTimestamp,
      lastTimestamp,
    ])
    assert.deepEqual(writtenEvents, [
      ['other', 1, '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z'],
      ['web', 2, '2026-01-01T00:00:00Z', '2026-01-01T00:00:03Z'],
    ])
  })

  it('writes each event with the causes of its caller', async () => {
    const { causes, say, answer } = createWorld()
    withCauses(['pods/default/one@1'], () => say('one'))
    say('two')
    withCauses(['pods/default/three@3'], () => say('three'))
    await answer()
    assert.deepEqual(causes, [['pods/default/one@1'], [], ['pods/default/three@3']])
  })

  it('queues at most a thousand events, but still counts repeats of queued ones', async () => {
    const { clock, made, say, answer } = createWorld()
    say('first')
    await clock.advance(0)
    for (let at = 0; at < 1200; at++) say(`pod-${at}`)
    say('pod-999')
    await answer()
    assert.equal(made.length, 1 + 1000)
    assert.equal(made.at(-1)?.involvedObject.name, 'pod-999')
    assert.equal(made.at(-1)?.count, 2)
  })
})
