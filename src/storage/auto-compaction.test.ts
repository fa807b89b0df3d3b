import assert from 'node:assert/strict'
import { it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { createAutoCompaction } from './auto-compaction.ts'

it('auto-compaction keeps the whole history window and at most a tenth more', async () => {
  const clock = createVirtualClock(0)
  const windowMs = 10_000
  let revision = 0
  let compacted = 0
  const compact = (at: number): void => {
    assert.ok(at >= compacted)
    compacted = at
  }
  const timer = createAutoCompaction({ clock, windowMs, revision: () => revision, compact })
  // Millisecond n creates revision n / 100.
  for (let now = 100; now <= 60_000; now += 100) {
    revision = now / 100
    await clock.advance(100)
    assert.ok(compacted * 100 <= Math.max(0, now + 100 - windowMs), 'nothing inside the window is given up')
    assert.ok(compacted * 100 >= now - windowMs - 2 * (windowMs / 10), 'nothing much older is kept')
  }
  timer.cancel()
  assert.equal(clock.pending, 0)
})
