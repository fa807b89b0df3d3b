/** Tests the controller manager on a complete API server with a virtual clock: controllers do not block each other. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'

import { ConfigMaps, Secrets } from '#apis/core/v1.ts'
import { type Controller, defineController } from '#controllers/controller.ts'
import { startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock, realClock, type VirtualClock } from '#lib/clock.ts'
import { createLog, type Logger } from '#lib/log/log.ts'
import { itself } from '#reconcile/controller.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

let clock: VirtualClock
let plane: ControlPlane
/** A logger that appends its lines to a list. */
const logTo = (lines: string[]): Logger => {
  const stream = {
    write(text: string, done: () => void) {
      lines.push(text)
      done()
    },
  }
  return createLog({ clock: realClock, stream }).logger
}

beforeEach(async () => {
  clock = createVirtualClock(Date.UTC(2026, 0, 1))
  plane = await startControlPlane({ clock })
})

afterEach(() => plane.stop())

const looking = (name: string, more: Partial<Controller>, seen: string[]): Controller =>
  defineController({
    name,
    watches: [itself(ConfigMaps)],
    rules: [],
    reconcile(key) {
      seen.push(`${name} ${key}`)
      return Promise.resolve()
    },
    ...more,
  })

const OBJECT = { namespace: 'default', name: 'here' }

describe('controllers in a manager', () => {
  it('start without those whose kinds cannot be listed', async () => {
    const seen: string[] = []
    const missing = { ...Secrets, group: 'broken.example.com', plural: 'things' }
    const all = [looking('whole', {}, seen), looking('held-up', { reads: [missing] }, seen)]
    await using controllers = startControllers(plane, clock, all, { log: logTo([]) })
    await controllers.client.create(ConfigMaps, { metadata: OBJECT })
    await clock.advance(60_000)
    assert.ok(seen.includes('whole default/here'))
    assert.deepEqual(
      seen.filter((what) => what.startsWith('held-up')),
      [],
    )
  })

  it('read only the kinds that they declare', async () => {
    const errors: string[] = []
    const careless = looking(
      'careless',
      { reconcile: (_, { cache }) => Promise.resolve(void cache.get(Secrets, 'a')) },
      [],
    )
    await using controllers = startControllers(plane, clock, [careless], { log: logTo(errors) })
    await controllers.client.create(ConfigMaps, { metadata: OBJECT })
    await clock.advance(1000)
    assert.match(errors.join(''), /Secret is read from the cache and is not among what the controller watches or reads/)
  })

  it('do not run if prepare() returns false', async () => {
    const seen: string[] = []
    const all = [looking('idle', { prepare: () => Promise.resolve(false) }, seen), looking('busy', {}, seen)]
    await using controllers = startControllers(plane, clock, all)
    await controllers.client.create(ConfigMaps, { metadata: OBJECT })
    await clock.advance(1000)
    assert.ok(seen.length > 0 && seen.every((what) => what.startsWith('busy')))
  })

  it('have a higher client rate limit if they declare a pace', async () => {
    const done: string[] = []
    const asking = (name: string, more: Partial<Controller>): Controller => ({
      ...looking(name, more, []),
      async reconcile(key, { client, signal }) {
        if (key !== 'default/here') return
        for (let times = 0; times < 3; times++) await client.get(ConfigMaps, OBJECT, { signal })
        done.push(name)
      },
    })
    const all = [asking('quick', { pace: { qps: 1, burst: 3 } }), asking('plain', {})]
    await using controllers = startControllers(plane, clock, all, { limits: { qps: 0.1, burst: 1 } })
    await controllers.client.create(ConfigMaps, { metadata: OBJECT })
    await clock.advance(15_000)
    assert.deepEqual(done, ['quick'])
    await clock.advance(15_000)
    assert.deepEqual(done, ['quick', 'plain'])
  })
})
