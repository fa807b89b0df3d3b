import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { User } from '#auth/user.ts'
import { refusal, refusalStatus, type SampleWrite } from '#kits/admission/sample-write.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'

import { createEventRateLimit, type EventLimit } from './event-rate-limit.ts'
import type { AdmissionPlugin } from './plugin.ts'

function create(...limits: EventLimit[]): { readonly plugin: AdmissionPlugin; readonly clock: VirtualClock } {
  const clock = createVirtualClock()
  return { plugin: createEventRateLimit({ clock, limits }), clock }
}

const event = (more: Partial<SampleWrite> = {}, about = 'p'): SampleWrite => ({
  resource: 'events',
  object: {
    metadata: { name: 'e' },
    source: { component: 'kubelet', host: 'n' },
    involvedObject: { kind: 'Pod', name: about },
  },
  ...more,
})
const by = (name: string): Partial<SampleWrite> => ({ user: { name } as User })

describe('EventRateLimit', () => {
  it('admits a burst of events, and then the configured number per second', async () => {
    const { plugin, clock } = create({ type: 'Server', qps: 2, burst: 3 })
    const let3 = [await refusal(plugin, event()), await refusal(plugin, event()), await refusal(plugin, event())]
    assert.deepEqual(let3, [undefined, undefined, undefined])
    const { code, reason, message } = (await refusalStatus(plugin, event())) ?? {}
    const text = 'Too many requests: limit reached on type Server for key '
    assert.deepEqual([code, reason, message], [429, 'TooManyRequests', text])
    await clock.advance(500)
    assert.equal(await refusal(plugin, event()), undefined)
    assert.notEqual(await refusal(plugin, event()), undefined)
  })

  const keyed: readonly (readonly [EventLimit['type'], SampleWrite, SampleWrite, string])[] = [
    ['Namespace', event({ namespace: 'a' }), event({ namespace: 'b' }), 'a'],
    ['User', event(by('jane')), event(by('joe')), 'jane'],
    ['SourceAndObject', event({}, 'p'), event({}, 'q'), 'kubeletnPodp'],
  ]
  for (const [type, one, other, key] of keyed) {
    it(`has a separate limit for each ${type}`, async () => {
      const { plugin } = create({ type, qps: 1, burst: 1 })
      assert.equal(await refusal(plugin, one), undefined)
      assert.equal(await refusal(plugin, other), undefined)
      assert.equal(await refusal(plugin, one), `Too many requests: limit reached on type ${type} for key ${key}`)
    })
  }

  it('checks all limits of an event and reports all that are exceeded', async () => {
    const { plugin } = create({ type: 'Server', qps: 1, burst: 1 }, { type: 'User', qps: 1, burst: 1 })
    await refusal(plugin, event(by('jane')))
    assert.equal(
      await refusal(plugin, event(by('jane'))),
      'Too many requests: [limit reached on type Server for key , limit reached on type User for key jane]',
    )
  })

  it('forgets the least recently used key when its cache is full', async () => {
    const { plugin } = create({ type: 'User', qps: 1, burst: 1, cacheSize: 2 })
    for (const name of ['a', 'b', 'c']) assert.equal(await refusal(plugin, event(by(name))), undefined)
    assert.notEqual(await refusal(plugin, event(by('c'))), undefined)
    assert.equal(await refusal(plugin, event(by('a'))), undefined)
  })

  it('ignores dry runs, events of events.k8s.io and objects other than events', async () => {
    const { plugin } = create({ type: 'Server', qps: 1, burst: 1 })
    await refusal(plugin, event())
    const objectKind = { group: 'events.k8s.io', version: 'v1', kind: 'Event' }
    assert.equal(await refusal(plugin, event({ dryRun: true })), undefined)
    assert.equal(await refusal(plugin, event({ objectKind })), undefined)
    assert.equal(await refusal(plugin, { resource: 'pods', object: { metadata: {} } }), undefined)
  })
})
