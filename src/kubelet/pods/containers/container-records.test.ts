import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import { bedOf, containerOf, podOf } from '../worker.fixture.ts'

test('a container that disappeared since the last relist causes no error with a runtime without events', async () => {
  let output = ''
  const stream = { write: (text: string, done: () => void) => ((output += text), done()) }
  const { logger: log } = createLog({ stream, clock: createVirtualClock() })
  const { clock, workers, runtime } = bedOf({}, { log }, () => ({
    getContainerEvents: () => {
      throw new Error('unknown method GetContainerEvents')
    },
  }))
  const failing = containerOf('c', { command: ['sh', '-c', 'exit 3'] })
  const object = podOf({ containers: [failing] })
  workers.updatePod({ type: 'ADDED', object })
  // The status write comes back as an event, possibly between two relists.
  for (let step = 0; step < 500; step++) {
    await clock.advance(100)
    workers.updatePod({ type: 'MODIFIED', object })
  }
  const kept = (await runtime.listContainers({})).containers
  assert.ok(kept.length <= 2, `${kept.length} are kept`)
  assert.doesNotMatch(output, /Error syncing pod/)
  await workers.stop()
})
