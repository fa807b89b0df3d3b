import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { IDLE_MS, LIFETIME_MS, MAX_OPEN, Sessions, type SessionsOptions, type StoredSession } from './sessions.ts'

const HOUR_MS = 3_600_000

function optionsOf(
  store?: SessionsOptions['store'],
): SessionsOptions & { readonly clock: ReturnType<typeof createVirtualClock> } {
  const onError = (error: unknown): void => assert.fail(String(error))
  return { clock: createVirtualClock(), random: createSeededRandom(1), store, onError }
}

/** Keeps the last state that was written. */
function memoryStore(): NonNullable<SessionsOptions['store']> & { written: readonly StoredSession[] } {
  const store = {
    written: [] as readonly StoredSession[],
    read: () => Promise.resolve(store.written),
    write: async (sessions: readonly StoredSession[]) => void (store.written = sessions),
  }
  return store
}

describe('Sessions of the console of one cluster', () => {
  it('finds a session by the value of its cookie only', async () => {
    const sessions = await Sessions.open(optionsOf())
    const secret = sessions.start()
    assert.match(secret, /^[\w-]{43}$/)
    assert.ok(sessions.find([secret]) !== undefined)
    assert.ok(sessions.find(['wrong', secret]) !== undefined)
    for (const wrong of ['', 'wrong', secret.slice(1), `${secret}x`]) assert.equal(sessions.find([wrong]), undefined)
  })

  it('ends a session after an hour without requests', async () => {
    const options = optionsOf()
    const sessions = await Sessions.open(options)
    const secret = sessions.start()
    for (let n = 0; n < 3; n++) {
      await options.clock.advance(IDLE_MS - 1)
      assert.ok(sessions.find([secret]) !== undefined)
    }
    await options.clock.advance(IDLE_MS)
    assert.equal(sessions.find([secret]), undefined)
  })

  it('ends a session after 16 hours, with the requests under way', async () => {
    const options = optionsOf()
    const sessions = await Sessions.open(options)
    const secret = sessions.start()
    const session = sessions.find([secret])
    assert.ok(session !== undefined)
    const watch = sessions.during(session, (signal) => new Promise((done) => signal.addEventListener('abort', done)))
    await options.clock.advance(LIFETIME_MS - 1)
    assert.ok(sessions.find([secret]) !== undefined)
    await options.clock.advance(1)
    await watch
    assert.equal(sessions.find([secret]), undefined)
  })

  it('does not count a session as idle while a request is under way', async () => {
    const options = optionsOf()
    const sessions = await Sessions.open(options)
    const secret = sessions.start()
    const session = sessions.find([secret])
    assert.ok(session !== undefined)
    const { promise, resolve } = Promise.withResolvers<void>()
    const watch = sessions.during(session, () => promise)
    await options.clock.advance(5 * HOUR_MS)
    resolve()
    await watch
    await options.clock.advance(IDLE_MS - 1)
    assert.ok(sessions.find([secret]) !== undefined)
  })

  it('limits the requests of a session that are under way', async () => {
    const sessions = await Sessions.open(optionsOf())
    const session = sessions.find([sessions.start()])
    assert.ok(session !== undefined)
    const { promise, resolve } = Promise.withResolvers<void>()
    const open = Array.from({ length: MAX_OPEN }, () => sessions.during(session, () => promise))
    assert.equal(await sessions.during(session, () => Promise.resolve(1)), undefined)
    resolve()
    await Promise.all(open)
    assert.equal(await sessions.during(session, () => Promise.resolve(1)), 1)
  })

  it('ends the session that was not used for the longest time when there are more than 100', async () => {
    const options = optionsOf()
    const sessions = await Sessions.open(options)
    const secrets: string[] = []
    for (let n = 0; n <= 100; n++) {
      secrets.push(sessions.start())
      await options.clock.advance(1)
    }
    const valid = secrets.filter((secret) => sessions.find([secret]) !== undefined)
    assert.deepEqual(valid, secrets.slice(1))
  })

  it('continues stored sessions, which have only hashes', async () => {
    const store = memoryStore()
    const options = optionsOf(store)
    const first = await Sessions.open(options)
    const [secret, ended] = [first.start(), first.start()]
    const session = first.find([ended])
    assert.ok(session !== undefined)
    first.end(session)
    await first.close()
    assert.equal(store.written.length, 1)
    assert.ok(!JSON.stringify(store.written).includes(secret))
    const second = await Sessions.open(options)
    assert.ok(second.find([secret]) !== undefined)
    assert.equal(second.find([ended]), undefined)
  })

  it('does not continue stored sessions that are over', async () => {
    const store = memoryStore()
    const options = optionsOf(store)
    const first = await Sessions.open(options)
    const secret = first.start()
    await first.close()
    await options.clock.advance(IDLE_MS)
    const second = await Sessions.open(options)
    assert.equal(second.find([secret]), undefined)
  })

  it('serves without the store if the store fails', async () => {
    const errors: unknown[] = []
    const fail = (): Promise<never> => Promise.reject(new Error('the disk is full'))
    const options = { ...optionsOf({ read: fail, write: fail }), onError: (error: unknown) => void errors.push(error) }
    const sessions = await Sessions.open(options)
    assert.ok(sessions.find([sessions.start()]) !== undefined)
    await sessions.close()
    assert.equal(errors.length, 3)
  })
})
