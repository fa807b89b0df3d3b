import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import type { Runtime } from '#cri/runtime.ts'

import type { VolumeManager } from '../volumes/volume-manager.ts'
import { bedOf, containerOf, podOf } from './worker.fixture.ts'

interface Keeper extends VolumeManager {
  readonly mounted: string[]
  readonly left: string[]
  /** UIDs of pods with volumes on disk. */
  readonly there: Set<string>
  failure: string | undefined
  fault: Error | undefined
}

function keeperWith(...there: string[]): Keeper {
  const keeper: Keeper = {
    mounted: [],
    left: [],
    there: new Set(there),
    failure: undefined,
    fault: undefined,
    async mount({ metadata: { uid = '' } }) {
      keeper.mounted.push(uid)
      keeper.there.add(uid)
      return keeper.failure === undefined ? { mounts: new Map() } : { failures: [keeper.failure] }
    },
    subPath: async () => '',
    read: async () => '',
    async unmount(uid) {
      if (keeper.fault !== undefined) throw keeper.fault
      keeper.left.push(uid)
      keeper.there.delete(uid)
    },
    uids: async () => [...keeper.there],
  }
  return keeper
}

const POD: Pod = podOf({ containers: [containerOf('c')] })

test('volumes of a running pod are updated periodically', async () => {
  const volumes = keeperWith()
  const { clock, workers, events } = bedOf({}, { volumes })
  workers.updatePod({ type: 'ADDED', object: POD })
  await clock.advance(5000)
  const before = volumes.mounted.length
  await clock.advance(200_000)
  assert.ok(volumes.mounted.length >= before + 2, `${volumes.mounted.length} times`)
  volumes.failure = 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found'
  await clock.advance(100_000)
  assert.ok(events.includes(`FailedMount: ${volumes.failure}`))
  assert.equal(workers.registry.find('default', 'web')?.pod.status.phase, 'Running')
  await workers.stop()
})

test('failed mounts of volumes are retried soon, with backoff', async () => {
  const volumes = keeperWith()
  volumes.failure = 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found'
  const { clock, workers } = bedOf({}, { volumes })
  workers.updatePod({ type: 'ADDED', object: POD })
  const triesWithin = async (ms: number): Promise<number> => {
    const before = volumes.mounted.length
    await clock.advance(ms)
    return volumes.mounted.length - before
  }
  // At once, then after 0.5, 1.5, 3.5 and 7.5 seconds.
  assert.equal(await triesWithin(10_000), 5)
  const later = await triesWithin(60_000)
  assert.ok(later >= 4 && later <= 7, String(later))
  volumes.failure = undefined
  await clock.advance(16_000)
  assert.equal(workers.registry.find('default', 'web')?.pod.status.phase, 'Running')
  await workers.stop()
})

test('failed updates of mounted volumes use the normal retry interval', async () => {
  const volumes = keeperWith()
  volumes.failure = 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found'
  let tries = 0
  const { clock, workers } = bedOf({}, { volumes }, () => ({
    runPodSandbox: () => {
      tries++
      return Promise.reject(new Error('no network'))
    },
  }))
  workers.updatePod({ type: 'ADDED', object: POD })
  await clock.advance(100)
  volumes.failure = undefined
  await clock.advance(60_000)
  assert.ok(tries >= 4 && tries <= 7, String(tries))
  await workers.stop()
})

test('volumes of pods that were deleted during a kubelet restart are unmounted once all pods are known', async () => {
  const volumes = keeperWith('gone', 'u1')
  const { clock, workers } = bedOf({}, { volumes })
  await clock.advance(5000)
  assert.deepEqual(volumes.left, [])
  workers.updatePod({ type: 'ADDED', object: POD })
  workers.sourcesReady()
  await clock.advance(5000)
  assert.deepEqual(volumes.left, ['gone'])
  assert.deepEqual([...volumes.there], ['u1'])
  await workers.stop()
})

test('the unmount of a volume that is still in use is retried', async () => {
  const volumes = keeperWith('gone')
  volumes.fault = new Error('target is busy')
  const { clock, workers } = bedOf({}, { volumes })
  workers.sourcesReady()
  await clock.advance(5000)
  assert.deepEqual(volumes.left, [])
  volumes.fault = undefined
  workers.updatePod({ type: 'ADDED', object: POD })
  await clock.advance(5000)
  assert.deepEqual(volumes.left, ['gone'])
  await workers.stop()
})

test('an image volume is pulled by the kubelet, and mounted by the runtime', async () => {
  const volumes = keeperWith()
  volumes.mount = async () => ({
    mounts: new Map([
      ['v', { hostPath: '', readOnly: true, image: { reference: 'data:1', pullPolicy: 'IfNotPresent' } }],
    ]),
  })
  const created: Parameters<Runtime['createContainer']>[0][] = []
  const { clock, workers, events } = bedOf({}, { volumes }, (runtime) => ({
    createContainer: (request, options) => {
      created.push(request)
      return runtime.createContainer(request, options)
    },
  }))
  const volumeMounts = [{ name: 'v', mountPath: '/data', subPath: 'part' }]
  workers.updatePod({ type: 'ADDED', object: podOf({ containers: [containerOf('c', { volumeMounts })] }) })
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

test('a subPathExpr with a missing variable fails with CreateContainerConfigError', async () => {
  const volumes = keeperWith()
  volumes.mount = async () => ({ mounts: new Map([['v', { hostPath: '/v', readOnly: false }]]) })
  const { clock, workers } = bedOf({}, { volumes })
  const volumeMounts = [{ name: 'v', mountPath: '/data', subPathExpr: '$(WHERE)/x' }]
  workers.updatePod({ type: 'ADDED', object: podOf({ containers: [containerOf('c', { volumeMounts })] }) })
  await clock.advance(5000)
  const [status] = workers.registry.find('default', 'web')?.pod.status.containerStatuses ?? []
  assert.deepEqual(status?.state.waiting, { reason: 'CreateContainerConfigError', message: 'missing value for WHERE' })
  await workers.stop()
})
