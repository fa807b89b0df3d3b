import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log.ts'

import { PodWorkers, type PodWorkersOptions } from './pod-workers.ts'

test('a pod is found by its name until it has gone', () => {
  const { logger: log } = createLog({ stream: { write: () => undefined }, clock: createVirtualClock() })
  const workers = new PodWorkers({ log } as unknown as PodWorkersOptions)
  const object: Pod = {
    metadata: { name: 'web', namespace: 'default', uid: 'u1' },
    spec: { containers: [{ name: 'c', resources: {} }] },
    status: {},
  }
  workers.learn({ type: 'ADDED', object })
  assert.deepEqual([...(workers.find('default', 'web')?.containers.keys() ?? [])], ['c'])
  assert.equal(workers.find('default', 'web', 'u2'), undefined)
  workers.learn({ type: 'DELETED', object })
  assert.deepEqual([...workers.pods()], [])
})
