import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

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
    const traffic = new Traffic()
    const [first] = fill(traffic)
    const room = traffic.room()
    first?.reject(new Error('refused'))
    await room
    assert.equal(traffic.room(), undefined)
  })

  it('leave the rest of the world in peace when the last of them is over', async () => {
    const traffic = new Traffic()
    assert.equal(traffic.calm(), undefined)
    const sent = fill(traffic)
    let isCalm = false
    const calm = traffic.calm()?.then(() => (isCalm = true))
    for (const one of sent.slice(1)) one.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(isCalm, false)
    sent[0]?.resolve()
    await calm
    assert.equal(traffic.calm(), undefined)
  })
})
