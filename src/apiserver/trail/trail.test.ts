import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { withCauses } from '#lib/causes.ts'
import { createVirtualClock } from '#lib/clock.ts'

import { type NotedRequest, Trail } from './trail.ts'

const REQUEST: NotedRequest = {
  user: { name: 'ann' },
  verb: 'patch',
  manager: 'kubectl',
  auditId: 'one',
}

describe('Trail', () => {
  it('keeps the user and the causes of a write', () => {
    const trail = new Trail(createVirtualClock())
    withCauses(['pods/default/a@1'], () => trail.note(7, REQUEST))
    const expected = { user: 'ann', verb: 'patch', manager: 'kubectl', auditId: 'one', because: ['pods/default/a@1'] }
    assert.deepEqual([trail.of(7), trail.of(8)], [expected, undefined])
  })

  it('forgets writes that are older than the history of the store', async () => {
    const clock = createVirtualClock()
    const trail = new Trail(clock)
    for (let revision = 1; revision <= 10; revision++) trail.note(revision, REQUEST)
    await clock.advance(301_000)
    for (let revision = 11; revision <= 16; revision++) trail.note(revision, REQUEST)
    const known = Array.from({ length: 16 }, (_, at) => at + 1).filter((revision) => trail.of(revision) !== undefined)
    assert.deepEqual(known, [11, 12, 13, 14, 15, 16])
  })

  it('is bounded in a burst', () => {
    const trail = new Trail(createVirtualClock())
    for (let revision = 1; revision <= 30_000; revision++) trail.note(revision, REQUEST)
    assert.deepEqual([trail.of(10_000), trail.of(10_001)?.user], [undefined, 'ann'])
  })
})
