import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import { createMemoryVolumes } from './memory-volumes.ts'
import type { VolumeKeeper } from './volume-keeper.ts'

test('volumes in memory come and go with their pod, or say why they do not come', async () => {
  const keeper: VolumeKeeper = createMemoryVolumes((name) => (name === 'bad' ? 'no such thing' : undefined))
  const podWith = (volume: string): Pod =>
    ({ metadata: { name: 'p', uid: 'u1' }, spec: { containers: [], volumes: [{ name: volume }] } }) as unknown as Pod
  const { signal } = new AbortController()
  assert.deepEqual(await keeper.bring(podWith('bad'), signal), { failures: ['no such thing'] })
  const brought = await keeper.bring(podWith('v'), signal)
  assert.ok('mounts' in brought)
  assert.equal(brought.mounts.get('v')?.hostPath, '/pods/u1/volumes/v')
  assert.deepEqual(await keeper.uids(), ['u1'])
  await keeper.leave('u1')
  assert.deepEqual(await keeper.uids(), [])
})
