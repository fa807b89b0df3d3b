/** Tests the event recorder on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { Events } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { EventRecorder } from '#client/events/event-recorder.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const ADMIN = { name: 'tester', uid: '', groups: ['system:masters', 'system:authenticated'], extra: {} }

let clock: VirtualClock
let plane: ControlPlane

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock })
})

afterEach(() => plane.stop())

const client = (): ApiClient =>
  new ApiClient({ transport: plane.running.server.clientAs(ADMIN), clock, userAgent: 'tester/v1' })

describe('EventRecorder', () => {
  const pod = { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'web', namespace: 'default', uid: 'u1' } }
  const events = async (): Promise<string[]> => {
    const { items } = await client().list(Events, { namespace: 'default' })
    return items
      .filter(({ involvedObject }) => involvedObject.name === 'web')
      .map(({ reason, message, count, reportingComponent }) => `${reason} ${count} ${reportingComponent}: ${message}`)
  }

  it('counts repeated events, and aggregates similar ones', async () => {
    const recorder = new EventRecorder({ client: client(), source: { component: 'tester' } })
    for (let n = 0; n < 3; n++)
      recorder.record(pod, { type: 'Normal', reason: 'Pulled', message: 'Container image pulled' })
    for (let n = 0; n < 12; n++) recorder.record(pod, { type: 'Warning', reason: 'Failed', message: `Error ${n}` })
    await recorder.flush()
    const told = await events()
    assert.ok(told.includes('Pulled 3 tester: Container image pulled'))
    assert.ok(told.includes('Failed 3 : (combined from similar events): Error 11'), told.join('\n'))
    assert.equal(told.length, 1 + 9 + 1)
  })

  it('merges repeats of a queued event, and counts later ones', async () => {
    const sent: string[] = []
    const real = client()
    const counted = {
      clock: real.clock,
      create: (...args: Parameters<typeof real.create>) => (sent.push('create'), real.create(...args)),
      patch: (...args: Parameters<typeof real.patch>) => (sent.push('patch'), real.patch(...args)),
    } as typeof real
    const recorder = new EventRecorder({ client: counted, source: { component: 'tester' } })
    const say = (message: string): void => recorder.record(pod, { type: 'Normal', reason: 'Pulled', message })
    for (let n = 0; n < 15; n++) say(`image ${n}`)
    await recorder.flush()
    assert.deepEqual(sent, Array<string>(10).fill('create'), 'nine, and one for the rest')
    await clock.advance(5000)
    for (let n = 15; n < 20; n++) say(`image ${n}`)
    await recorder.flush()
    assert.deepEqual(sent.slice(10), ['patch'])
    assert.ok((await events()).includes('Pulled 11 : (combined from similar events): image 19'))
    const { items } = await real.list(Events, { namespace: 'default' })
    const { firstTimestamp, lastTimestamp } = items.find(({ count }) => count === 11) ?? {}
    assert.equal(Date.parse(lastTimestamp ?? '') - Date.parse(firstTimestamp ?? ''), 5000)
  })

  it('drops bursts of events about one object for five minutes', async () => {
    const recorder = new EventRecorder({ client: client(), source: { component: 'tester' } })
    const say = (reason: string): void => recorder.record(pod, { type: 'Normal', reason, message: 'so' })
    for (let n = 0; n < 40; n++) say(`R${n}`)
    await recorder.flush()
    assert.equal((await events()).length, 25)
    await clock.advance(301_000)
    say('Later')
    await recorder.flush()
    assert.equal((await events()).length, 26)
  })

  it('drops queued events when it is aborted', async () => {
    const end = new AbortController()
    const recorder = new EventRecorder({ client: client(), source: { component: 'tester' }, signal: end.signal })
    recorder.record(pod, { type: 'Normal', reason: 'First', message: 'so' })
    await recorder.flush()
    recorder.record(pod, { type: 'Normal', reason: 'Late', message: 'so' })
    end.abort()
    recorder.record(pod, { type: 'Normal', reason: 'Later', message: 'so' })
    await recorder.flush()
    assert.deepEqual(await events(), ['First 1 tester: so'])
  })
})
