import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { LoginThrottle } from './login-throttle.ts'

const attempts = (throttle: LoginThrottle, count: number, address: string, username: string): number[] =>
  Array.from({ length: count }, () => throttle.begin(address, username))

describe('LoginThrottle', () => {
  it('lets five attempts for a username pass and doubles the delay after each further one', async () => {
    const clock = createVirtualClock()
    const throttle = new LoginThrottle(clock)
    const delays: number[] = []
    for (let n = 0; n < 12; n++) {
      assert.equal(throttle.begin('10.0.0.1', 'jane'), 0)
      const waitSeconds = n < 5 ? 0 : throttle.begin('10.0.0.1', 'jane')
      delays.push(waitSeconds)
      await clock.advance(waitSeconds * 1000)
    }
    assert.deepEqual(delays, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64])
  })

  it('counts attempts at the same time', () => {
    const throttle = new LoginThrottle(createVirtualClock())
    assert.equal(attempts(throttle, 10_000, '10.0.0.1', 'jane').filter((wait) => wait === 0).length, 6)
  })

  it('does not count attempts that it refused', async () => {
    const clock = createVirtualClock()
    const throttle = new LoginThrottle(clock)
    attempts(throttle, 1000, '10.0.0.1', 'jane')
    await clock.advance(1000)
    assert.equal(throttle.begin('10.0.0.1', 'jane'), 0)
  })

  it('delays an address that tries many usernames, and no other address', () => {
    const throttle = new LoginThrottle(createVirtualClock())
    const waits = Array.from({ length: 100 }, (_, n) => throttle.begin('10.0.0.1', `user-${n}`))
    assert.equal(waits.filter((wait) => wait === 0).length, 21)
    assert.equal(throttle.begin('10.0.0.2', 'jane'), 0)
  })

  it('delays a username that many addresses try, by half a minute at most', async () => {
    const clock = createVirtualClock()
    const throttle = new LoginThrottle(clock)
    let most = 0
    for (let n = 0; n < 200; n++) {
      const wait = throttle.begin(`10.0.1.${n}`, 'jane')
      most = Math.max(most, wait)
      await clock.advance(wait * 1000)
    }
    assert.equal(most, 30)
    assert.equal(throttle.begin('10.0.0.2', 'joe'), 0)
  })

  it('resets the failures of a username only for the address that logged in', () => {
    const throttle = new LoginThrottle(createVirtualClock())
    attempts(throttle, 5, '10.0.0.1', 'jane')
    attempts(throttle, 4, '10.0.0.2', 'jane')
    assert.equal(throttle.begin('10.0.0.2', 'jane'), 0)
    throttle.succeeded('10.0.0.2', 'jane')
    assert.deepEqual(attempts(throttle, 7, '10.0.0.2', 'jane'), [0, 0, 0, 0, 0, 0, 1])
    assert.deepEqual(attempts(throttle, 2, '10.0.0.1', 'jane'), [0, 1])
  })

  it('does not delay an address from which people log in successfully', () => {
    const throttle = new LoginThrottle(createVirtualClock())
    for (let n = 0; n < 1000; n++) {
      assert.equal(throttle.begin('10.0.0.1', `user-${n % 7}`), 0)
      throttle.succeeded('10.0.0.1', `user-${n % 7}`)
    }
    assert.equal(throttle.size, 0)
  })

  it('forgets failures after half an hour', async () => {
    const clock = createVirtualClock()
    const throttle = new LoginThrottle(clock)
    attempts(throttle, 5, '10.0.0.1', 'jane')
    await clock.advance(30 * 60_000)
    assert.deepEqual(attempts(throttle, 7, '10.0.0.1', 'jane'), [0, 0, 0, 0, 0, 0, 1])
  })

  it('counts an IPv6 /64 network as one address, and an IPv4-mapped address as IPv4', () => {
    const same = [
      ['2001:db8::1', '2001:DB8:0:0:ffff::2'],
      ['2001:0db8:0000:0000:1::', '2001:db8::9%eth0'],
      ['::ffff:10.0.0.1', '10.0.0.1'],
      ['::1', '0:0:0:0:0:0:0:1'],
    ] as const
    for (const [one, other] of same) {
      const throttle = new LoginThrottle(createVirtualClock())
      attempts(throttle, 6, one, 'jane')
      assert.equal(throttle.begin(other, 'jane'), 1, `${one} ${other}`)
    }
    const throttle = new LoginThrottle(createVirtualClock())
    attempts(throttle, 6, '2001:db8::1', 'jane')
    assert.equal(throttle.begin('2001:db8:0:1::1', 'jane'), 0)
  })

  it('remembers a bounded number of addresses and usernames', () => {
    const throttle = new LoginThrottle(createVirtualClock())
    for (let n = 0; n < 50_000; n++) throttle.begin(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`, `user-${n}`)
    assert.equal(throttle.size, 30_000)
  })
})
