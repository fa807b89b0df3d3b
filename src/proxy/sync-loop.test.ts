import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'

import { startSyncLoop } from './sync-loop.ts'

function loop(outcomes: readonly boolean[] = []): {
  readonly clock: VirtualClock
  readonly rounds: number[]
  readonly request: () => void
} {
  const clock = createVirtualClock(0)
  const [rounds, begin]: [number[], number] = [[], clock.elapsed()]
  const sync = (): Promise<boolean> => {
    rounds.push(clock.elapsed() - begin)
    return Promise.resolve(outcomes[rounds.length - 1] ?? true)
  }
  const running = startSyncLoop({ clock, minMs: 1000, retryMs: 30_000, maxMs: 3_600_000 }, sync)
  return { clock, rounds, request: () => running.request() }
}

describe('sync loop of kube-proxy', () => {
  it('syncs at once, and combines many requests into one more sync', async () => {
    const { clock, rounds, request } = loop()
    request()
    await clock.advance(10)
    for (let count = 0; count < 5; count++) request()
    await clock.advance(5000)
    assert.deepEqual(rounds, [0, 1000])
  })

  it('retries after a failure, and syncs periodically', async () => {
    const { clock, rounds, request } = loop([false])
    request()
    await clock.advance(3_700_000)
    assert.deepEqual(rounds, [0, 30_000, 3_630_000])
  })
})
