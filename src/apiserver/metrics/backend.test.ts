import assert from 'node:assert/strict'
import { it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createServerMeters } from '#model/metrics/families.ts'
import { type Backend, StorageError } from '#storage/backend.ts'
import { createMemoryBackend } from '#storage/memory.ts'

import { meterBackend } from './backend.ts'

const value = Buffer.from('x')

it('a metered storage backend counts operations, resources and failures', async () => {
  const meters = createServerMeters()
  const clock = createVirtualClock()
  const known = new Map([
    ['/registry/pods/', { group: '', resource: 'pods' }],
    ['/registry/services/specs/', { group: '', resource: 'services' }],
  ])
  const memory = createMemoryBackend({ clock, random: createSeededRandom(1) })
  const backend: Backend = meterBackend(memory, meters, { clock, resourceAt: (prefix) => known.get(prefix) })
  await backend.commit([{ key: '/registry/pods/a/b', value, expected: 0 }])
  await backend.commit([{ key: '/registry/pods/a/b', value }])
  await backend.commit([{ key: '/registry/services/specs/a/b', value: null }])
  await backend.commit([{ key: '/registry/unknown/a', value }])
  await backend.range({ start: '/registry/pods/', end: '/registry/pods0' })
  await assert.rejects(backend.range({ start: '/registry/pods/a/b', revision: 99 }), StorageError)
  assert.equal(await backend.currentRevision(), await memory.currentRevision())
  const text = meters.registry.render()
  const totals = [...text.matchAll(/^etcd_requests_total\{(.*)\} 1$/gm)].map(([, labels]) => labels)
  assert.deepEqual(totals, [
    'group="",operation="create",resource="pods"',
    'group="",operation="delete",resource="services"',
    'group="",operation="get",resource="pods"',
    'group="",operation="list",resource="pods"',
    'group="",operation="update",resource="pods"',
  ])
  assert.match(text, /^etcd_request_errors_total\{group="",operation="get",resource="pods"\} 1$/m)
  assert.match(text, /^etcd_request_duration_seconds_count\{group="",operation="create",resource="pods"\} 1$/m)
  await backend.close()
})
