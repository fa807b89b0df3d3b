import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { BindingLimiter } from './binding-limiter.ts'

/** Starts as many bindings as allowed. */
function fill(bindingLimiter: BindingLimiter): PromiseWithResolvers<void>[] {
  const sent: PromiseWithResolvers<void>[] = []
  while (bindingLimiter.capacity() === undefined) {
    const one = Promise.withResolvers<void>()
    void bindingLimiter.run(() => one.promise).catch(() => undefined)
    sent.push(one)
  }
  return sent
}

describe('BindingLimiter', () => {
  it('limits concurrent bindings, and allows another after success or failure', async () => {
    const bindingLimiter = new BindingLimiter(createVirtualClock())
    const [first] = fill(bindingLimiter)
    const capacity = bindingLimiter.capacity()
    first?.reject(new Error('refused'))
    await capacity
    assert.equal(bindingLimiter.capacity(), undefined)
  })

  it('resolves idle() after a pause without bindings', async () => {
    const clock = createVirtualClock()
    const bindingLimiter = new BindingLimiter(clock)
    assert.equal(bindingLimiter.idle(), undefined)
    const sent = fill(bindingLimiter)
    let isCalm = false
    const idle = bindingLimiter.idle()?.then(() => (isCalm = true))
    for (const one of sent) one.resolve()
    await clock.advance(99)
    await bindingLimiter.run(() => Promise.resolve())
    await clock.advance(99)
    assert.equal(isCalm, false)
    await clock.advance(1)
    await idle
    assert.equal(bindingLimiter.idle(), undefined)
  })
})
