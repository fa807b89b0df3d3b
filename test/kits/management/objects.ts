/** Creates the management server's object cache for tests, on an in-memory API server with a virtual clock. */
import { ApiClient } from '#client/api-client.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'
import { ManagementObjects } from '#management/objects.ts'

import { createMemoryApi, type MemoryApi } from './memory-api.ts'

export interface TestObjects extends Disposable {
  readonly objects: ManagementObjects
  readonly clock: VirtualClock
  readonly api: MemoryApi
}

/** Resolves when the (empty) kinds have been listed. Disposing ends the watches. */
export async function startObjects(): Promise<TestObjects> {
  const clock = createVirtualClock()
  const api = createMemoryApi(clock)
  const end = new AbortController()
  const client = new ApiClient({ transport: api.transport, clock, userAgent: 'test' })
  // Failures are part of these tests.
  const stream = { write: (_text: string, done: () => void) => done() }
  const log = createLog({ clock, stream }).logger
  const objects = new ManagementObjects({ client, clock, random: createSeededRandom(1), log, signal: end.signal })
  await objects.synced()
  return { objects, clock, api, [Symbol.dispose]: () => end.abort() }
}
