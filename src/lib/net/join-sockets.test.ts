import assert from 'node:assert/strict'
import { type Duplex, duplexPair } from 'node:stream'
import { describe, it } from 'node:test'

import { createVirtualClock } from '../clock.ts'
import { joinSockets } from './join-sockets.ts'

interface Joined {
  readonly left: Duplex
  readonly right: Duplex
  readonly over: Promise<void>
  readonly clock: ReturnType<typeof createVirtualClock>
  readonly stop: AbortController
}

function join(): Joined {
  const [left, inner] = duplexPair()
  const [outer, right] = duplexPair()
  const clock = createVirtualClock()
  const stop = new AbortController()
  for (const end of [left, right]) end.on('error', () => undefined)
  return { left, right, over: joinSockets(inner, outer, { clock, signal: stop.signal }), clock, stop }
}

async function textOf(end: Duplex): Promise<string> {
  let text = ''
  for await (const piece of end) text += (piece as Buffer).toString()
  return text
}

describe('joined sockets', () => {
  it('forward data and end in both directions', async () => {
    const { left, right, over } = join()
    left.write('to the right')
    left.end()
    right.end('to the left')
    assert.deepEqual(await Promise.all([textOf(right), textOf(left)]), ['to the right', 'to the left'])
    await over
  })

  it('deliver all data to a slow peer before they end', async () => {
    const { left, right, over } = join()
    left.end(Buffer.alloc(3_000_000, 'x'))
    right.end()
    assert.equal((await textOf(right)).length, 3_000_000)
    left.resume()
    await over
  })

  it('close the remaining side after a short delay', async () => {
    const { left, right, over, clock } = join()
    left.end()
    await textOf(right)
    right.write('still talking')
    await clock.advance(5000)
    await over
    assert.equal(clock.pending, 0)
  })

  it('are both destroyed on abort', async () => {
    const { stop, over } = join()
    stop.abort()
    await over
  })

  it('end if one of them is already closed', async () => {
    const [, inner] = duplexPair()
    const [outer, right] = duplexPair()
    inner.destroy()
    await new Promise((resolve) => inner.once('close', resolve))
    right.resume().end()
    const clock = createVirtualClock()
    await joinSockets(inner, outer, { clock, signal: new AbortController().signal })
  })
})
