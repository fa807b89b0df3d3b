import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log.ts'

import { bedOf, containerOf, podOf } from './worker.fixture.ts'

test('a container that was removed since the last listing is no fault, where the runtime tells no events', async () => {
  let said = ''
  const stream = { write: (text: string, done: () => void) => ((said += text), done()) }
  const { logger: log } = createLog({ stream, clock: createVirtualClock() })
  const { clock, workers, runtime } = bedOf({}, { log }, () => ({
    getContainerEvents: () => {
      throw new Error('unknown method GetContainerEvents')
    },
  }))
  const failing = containerOf('c', { command: ['sh', '-c', 'exit 3'] })
  const object = podOf({ containers: [failing] })
  workers.learn({ type: 'ADDED', object })
  // Whatever is written of the pod comes back, and between two listings too.
  for (let step = 0; step < 500; step++) {
    await clock.advance(100)
    workers.learn({ type: 'MODIFIED', object })
  }
  const kept = (await runtime.listContainers({})).containers
  assert.ok(kept.length <= 2, `${kept.length} are kept`)
  assert.doesNotMatch(said, /Error syncing pod/)
  await workers.stop()
})
