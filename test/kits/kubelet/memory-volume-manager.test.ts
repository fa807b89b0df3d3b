import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import type { VolumeManager } from '#kubelet/volumes/volume-manager.ts'

import { createMemoryVolumeManager } from './memory-volume-manager.ts'

test('in-memory volumes mount and unmount with their pod, or fail with a reason', async () => {
  const volumeManager: VolumeManager = createMemoryVolumeManager((name) =>
    name === 'bad' ? 'no such thing' : undefined,
  )
  const podWith = (volume: string): Pod =>
    ({ metadata: { name: 'p', uid: 'u1' }, spec: { containers: [], volumes: [{ name: volume }] } }) as unknown as Pod
  const { signal } = new AbortController()
  assert.deepEqual(await volumeManager.mount(podWith('bad'), signal), { failures: ['no such thing'] })
  const mounted = await volumeManager.mount(podWith('v'), signal)
  assert.ok('mounts' in mounted)
  assert.equal(mounted.mounts.get('v')?.hostPath, '/pods/u1/volumes/v')
  assert.deepEqual(await volumeManager.uids(), ['u1'])
  await volumeManager.unmount('u1')
  assert.deepEqual(await volumeManager.uids(), [])
})
