import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { LoginCode, WRONG_PERIOD_MS } from './login-code.ts'

describe('LoginCode', () => {
  it('has 256 random bits and works once', () => {
    const code = new LoginCode(createVirtualClock(), createSeededRandom(1))
    const first = code.current
    assert.match(first, /^[\w-]{43}$/)
    assert.equal(code.redeem(first), 'accepted')
    assert.notEqual(code.current, first)
    assert.equal(code.redeem(first), 'wrong')
    assert.equal(code.redeem(code.current), 'accepted')
  })

  it('refuses an empty, a shorter and a longer code', () => {
    const code = new LoginCode(createVirtualClock(), createSeededRandom(1))
    for (const text of ['', code.current.slice(1), `${code.current}x`]) assert.equal(code.redeem(text), 'wrong')
  })

  it('refuses all codes for a while after 20 wrong ones', async () => {
    const clock = createVirtualClock()
    const code = new LoginCode(clock, createSeededRandom(1))
    for (let n = 0; n < 20; n++) assert.equal(code.redeem(`guess-${n}`), 'wrong')
    assert.equal(code.redeem(code.current), 'too-many')
    await clock.advance(WRONG_PERIOD_MS)
    assert.equal(code.redeem(code.current), 'accepted')
  })
})
