/**
 * Tests how long events are stored, by --event-ttl and --lease-reuse-duration-seconds, on a complete API server with a
 * virtual clock.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Events } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { isNotFound } from '#meta/status.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const ADMIN = { name: 'tester', uid: '', groups: ['system:masters'], extra: {} }
const TTL_MS = 600_000
const where = { namespace: 'default', name: 'said' }

for (const [seconds, longerMs] of [
  [60, 30_000],
  [10, 10_000],
  [0, 0],
] as const) {
  test(`an event expires at most ${longerMs / 1000} s after --event-ttl with --lease-reuse-duration-seconds=${seconds}`, async () => {
    const clock = createVirtualClock(Date.UTC(2026, 0, 1))
    const settings = { 'event-ttl': TTL_MS, 'lease-reuse-duration-seconds': seconds }
    await using plane = await startControlPlane({ clock, settings })
    const client = new ApiClient({ transport: plane.running.server.clientAs(ADMIN), clock, userAgent: 'tester' })
    await client.create(Events, {
      metadata: where,
      involvedObject: { namespace: 'default', kind: 'Pod', name: 'p' },
      reason: 'Said',
    })
    await clock.advance(TTL_MS + longerMs - 1000)
    assert.equal((await client.get(Events, where)).reason, 'Said')
    await clock.advance(2000)
    await assert.rejects(client.get(Events, where), isNotFound)
  })
}
