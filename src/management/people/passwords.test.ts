import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock, realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { type DerivationInput, type Derive, Passwords } from './passwords.ts'

const clock = createVirtualClock()
const random = createSeededRandom(1)
const CHEAP = { memoryKiB: 8, passes: 1, parallelism: 1 }
const GOOD = 'correct horse battery'
const hasCode = (code: number) => (error: unknown) => (error as { status?: { code?: number } }).status?.code === code

describe('Passwords', () => {
  it('writes a hash in PHC format at the standard cost', async () => {
    const passwords = new Passwords({ clock: realClock, random })
    const text = await passwords.hash(GOOD)
    assert.match(text, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    assert.equal(await passwords.check(GOOD, text), 'right')
    assert.equal(await passwords.check(`${GOOD}!`, text), 'wrong')
  })

  it('accepts a hash of the reference implementation', async () => {
    // From its tests: password `password`, salt `somesalt`.
    const text = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
    assert.equal(await new Passwords({ clock: realClock, random }).check('password', text), 'right')
  })

  it('has a new salt for each hash', async () => {
    const passwords = new Passwords({ clock, random, cost: CHEAP })
    assert.notEqual(await passwords.hash(GOOD), await passwords.hash(GOOD))
  })

  it('treats different encodings of one character as equal', async () => {
    const passwords = new Passwords({ clock, random, cost: CHEAP })
    const text = await passwords.hash('pässword-long-1'.normalize('NFD'))
    assert.equal(await passwords.check('pässword-long-1'.normalize('NFC'), text), 'right')
  })

  it('reports a hash whose cost is lower than that of new ones', async () => {
    const text = await new Passwords({ clock, random, cost: CHEAP }).hash(GOOD)
    const passwords = new Passwords({ clock, random, cost: { ...CHEAP, memoryKiB: 16 } })
    assert.equal(await passwords.check(GOOD, text), 'outdated')
    assert.equal(await passwords.check('another password', text), 'wrong')
  })

  it('refuses short and long passwords', async () => {
    const passwords = new Passwords({ clock, random, cost: CHEAP })
    await assert.rejects(passwords.hash('x'.repeat(11)), hasCode(400))
    await assert.rejects(passwords.hash('😀'.repeat(11)), hasCode(400))
    await passwords.hash('😀'.repeat(12))
    await passwords.hash('x'.repeat(1024))
    await assert.rejects(passwords.hash('x'.repeat(1025)), hasCode(400))
    await assert.rejects(passwords.check('x'.repeat(1025), undefined), hasCode(400))
  })

  it('hashes at the same cost for unknown users, damaged hashes and hashes with an excessive cost', async () => {
    const inputs: DerivationInput[] = []
    const derive: Derive = async (input) => {
      inputs.push(input)
      return Buffer.alloc(input.lengthBytes)
    }
    const passwords = new Passwords({ clock, random, derive })
    const zeros = 'A'.repeat(43)
    const stored = [
      undefined,
      '',
      'plain text',
      `$argon2id$v=19$m=999999,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$${zeros}`,
      `$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$${zeros}`,
      `$argon2id$v=19$m=19456,t=99,p=1$AAAAAAAAAAAAAAAAAAAAAA$${zeros}`,
    ]
    for (const one of stored) assert.equal(await passwords.check(GOOD, one), 'wrong')
    assert.equal(await passwords.check(GOOD, `$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$${zeros}`), 'right')
    const costs = new Set(inputs.map(({ memoryKiB, passes, parallelism }) => `${memoryKiB} ${passes} ${parallelism}`))
    assert.deepEqual([inputs.length, [...costs]], [7, ['19456 2 1']])
  })

  it('computes at most two at once and refuses when 50 wait', async () => {
    let running = 0
    let most = 0
    const ends: (() => void)[] = []
    const derive: Derive = async ({ lengthBytes }) => {
      most = Math.max(most, ++running)
      await new Promise<void>((resolve) => ends.push(resolve))
      running--
      return Buffer.alloc(lengthBytes)
    }
    const passwords = new Passwords({ clock, random, derive })
    const tries = Array.from({ length: 60 }, () => passwords.check(GOOD, undefined))
    const settled = Promise.allSettled(tries)
    for (let turns = 0; turns < 200; turns++) {
      ends.shift()?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const results = await settled
    assert.deepEqual([results.filter(({ status }) => status === 'fulfilled').length, most, running], [52, 2, 0])
    for (const result of results) if (result.status === 'rejected') assert.ok(hasCode(429)(result.reason))
  })

  it('continues after a failed hash', async () => {
    let fails = true
    const derive: Derive = async ({ lengthBytes }) => {
      if (fails) throw new Error('out of memory')
      return Buffer.alloc(lengthBytes)
    }
    const passwords = new Passwords({ clock, random, derive })
    await Promise.allSettled(Array.from({ length: 10 }, () => passwords.check(GOOD, undefined)))
    fails = false
    assert.equal(await passwords.check(GOOD, undefined), 'wrong')
  })
})
