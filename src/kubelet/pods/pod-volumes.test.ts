import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import type { Runtime } from '../cri/runtime.ts'
import type { VolumeKeeper } from '../volumes/volume-keeper.ts'
import { bedOf, containerOf, podOf } from './worker.fixture.ts'

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

test('volumes that cannot be brought yet are tried again soon, and not without end so soon', async () => {
  const volumes = keeperWith()
  volumes.failure = 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found'
  const { clock, workers } = bedOf({}, { volumes })
  workers.learn({ type: 'ADDED', object: POD })
  const triesWithin = async (ms: number): Promise<number> => {
    const before = volumes.asked.length
    await clock.advance(ms)
    return volumes.asked.length - before
  }
  // At once, and half a second, one and a half, three and a half, seven and a half after.
  assert.equal(await triesWithin(10_000), 5)
  const later = await triesWithin(60_000)
  assert.ok(later >= 4 && later <= 7, String(later))
  volumes.failure = undefined
  await clock.advance(16_000)
  assert.equal(workers.find('default', 'web')?.pod.status.phase, 'Running')
  await workers.stop()
})

test('once volumes are there, what fails after them is not tried as soon as they were', async () => {
  const volumes = keeperWith()
  volumes.failure = 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found'
  let tries = 0
  const { clock, workers } = bedOf({}, { volumes }, () => ({
    runPodSandbox: () => {
      tries++
      return Promise.reject(new Error('no network'))
    },
  }))
  workers.learn({ type: 'ADDED', object: POD })
  await clock.advance(100)
  volumes.failure = undefined
  await clock.advance(60_000)
  assert.ok(tries >= 4 && tries <= 7, String(tries))
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

test('a volume that is an image is pulled, and left to the runtime to mount', async () => {
  const volumes = keeperWith()
  volumes.bring = async () => ({
    mounts: new Map([
      ['v', { hostPath: '', readOnly: true, image: { reference: 'data:1', pullPolicy: 'IfNotPresent' } }],
    ]),
  })
  const created: Parameters<Runtime['createContainer']>[0][] = []
  const { clock, workers, events } = bedOf({}, { volumes }, (runtime) => ({
    createContainer: (ask, options) => {
      created.push(ask)
      return runtime.createContainer(ask, options)
    },
  }))
  const volumeMounts = [{ name: 'v', mountPath: '/data', subPath: 'part' }]
  workers.learn({ type: 'ADDED', object: podOf({ containers: [containerOf('c', { volumeMounts })] }) })
  await clock.advance(5000)
  assert.ok(
    events.some((event) => event.startsWith('Pulled: Successfully pulled image "data:1"')),
    events.join('\n'),
  )
  const [mount] = created[0]?.config?.mounts ?? []
  assert.deepEqual(
    [mount?.containerPath, mount?.hostPath, mount?.readonly, mount?.image?.userSpecifiedImage, mount?.imageSubPath],
    ['/data', undefined, true, 'data:1', 'part'],
  )
  assert.match(mount?.image?.image ?? '', /^sha256:/)
  await workers.stop()
})

test('a part of a volume that is named by what is not there is waited for', async () => {
  const volumes = keeperWith()
  volumes.bring = async () => ({ mounts: new Map([['v', { hostPath: '/v', readOnly: false }]]) })
  const { clock, workers } = bedOf({}, { volumes })
  const volumeMounts = [{ name: 'v', mountPath: '/data', subPathExpr: '$(WHERE)/x' }]
  workers.learn({ type: 'ADDED', object: podOf({ containers: [containerOf('c', { volumeMounts })] }) })
  await clock.advance(5000)
  const [status] = workers.find('default', 'web')?.pod.status.containerStatuses ?? []
  assert.deepEqual(status?.state.waiting, { reason: 'CreateContainerConfigError', message: 'missing value for WHERE' })
  await workers.stop()
})
