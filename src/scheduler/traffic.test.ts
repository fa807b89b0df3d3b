import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { Traffic } from './traffic.ts'

/** As many bindings as there is room for. */
function fill(traffic: Traffic): PromiseWithResolvers<void>[] {
  const sent: PromiseWithResolvers<void>[] = []
  while (traffic.room() === undefined) {
    const one = Promise.withResolvers<void>()
    void traffic.binding(() => one.promise).catch(() => undefined)
    sent.push(one)
  }
  return sent
}

describe('bindings on their way', () => {
  it('are limited in number: the next has room when one of them is over, however that ended', async () => {
    const traffic = new Traffic(createVirtualClock())
    const [first] = fill(traffic)
    const room = traffic.room()
    first?.reject(new Error('refused'))
    await room
    assert.equal(traffic.room(), undefined)
  })

  it('leave the rest of the world in peace when there has been none for a moment', async () => {
    const clock = createVirtualClock()
    const traffic = new Traffic(clock)
    assert.equal(traffic.calm(), undefined)
    const sent = fill(traffic)
    let isCalm = false
    const calm = traffic.calm()?.then(() => (isCalm = true))
    for (const one of sent) one.resolve()
    await clock.advance(99)
    await traffic.binding(() => Promise.resolve())
    await clock.advance(99)
    assert.equal(isCalm, false)
    await clock.advance(1)
    await calm
    assert.equal(traffic.calm(), undefined)
  })
})
