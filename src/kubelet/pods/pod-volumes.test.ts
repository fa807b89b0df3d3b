import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import type { VolumeKeeper } from '../volumes/volume-keeper.ts'
import { bedOf, containerOf, podOf } from './worker-bed.ts'

interface Keeper extends VolumeKeeper {
  readonly asked: string[]
  readonly left: string[]
  /** What is on the disk. */
  readonly there: Set<string>
  failure: string | undefined
  fault: Error | undefined
}

function keeperWith(...there: string[]): Keeper {
  const keeper: Keeper = {
    asked: [],
    left: [],
    there: new Set(there),
    failure: undefined,
    fault: undefined,
    async bring({ metadata: { uid = '' } }) {
      keeper.asked.push(uid)
      keeper.there.add(uid)
      return keeper.failure === undefined ? { mounts: new Map() } : { failures: [keeper.failure] }
    },
    subPath: async () => '',
    read: async () => '',
    async leave(uid) {
      if (keeper.fault !== undefined) throw keeper.fault
      keeper.left.push(uid)
      keeper.there.delete(uid)
    },
    uids: async () => [...keeper.there],
  }
  return keeper
}

const POD: Pod = podOf({ containers: [containerOf('c')] })

test('volumes of a pod that runs are brought up to date again and again', async () => {
  const volumes = keeperWith()
  const { clock, workers, events } = bedOf({}, { volumes })
  workers.learn({ type: 'ADDED', object: POD })
  await clock.advance(5000)
  const before = volumes.asked.length
  await clock.advance(200_000)
  assert.ok(volumes.asked.length >= before + 2, `${volumes.asked.length} times`)
  volumes.failure = 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found'
  await clock.advance(100_000)
  assert.ok(events.includes(`FailedMount: ${volumes.failure}`))
  assert.equal(workers.find('default', 'web')?.pod.status.phase, 'Running')
  await workers.stop()
})

test('what pods left on the disk before a restart is given back, once all pods are known', async () => {
  const volumes = keeperWith('gone', 'u1')
  const { clock, workers } = bedOf({}, { volumes })
  await clock.advance(5000)
  assert.deepEqual(volumes.left, [])
  workers.learn({ type: 'ADDED', object: POD })
  workers.sourcesReady()
  await clock.advance(5000)
  assert.deepEqual(volumes.left, ['gone'])
  assert.deepEqual([...volumes.there], ['u1'])
  await workers.stop()
})

test('what is still in use is tried again', async () => {
  const volumes = keeperWith('gone')
  volumes.fault = new Error('target is busy')
  const { clock, workers } = bedOf({}, { volumes })
  workers.sourcesReady()
  await clock.advance(5000)
  assert.deepEqual(volumes.left, [])
  volumes.fault = undefined
  workers.learn({ type: 'ADDED', object: POD })
  await clock.advance(5000)
  assert.deepEqual(volumes.left, ['gone'])
  await workers.stop()
})
