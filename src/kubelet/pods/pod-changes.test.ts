import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ContainerStatus, Pod } from '#apis/core/v1.ts'

import type { PodWorkers } from './pod-workers.ts'
import { bedOf, containerOf, podOf } from './worker.fixture.ts'

const statusOf = (workers: PodWorkers): Pod['status'] => workers.registry.find('default', 'web')?.pod.status ?? {}
const mainOf = (workers: PodWorkers): ContainerStatus | undefined => statusOf(workers).containerStatuses?.[0]

const never = (): Promise<never> => new Promise(() => undefined)

test('a container with a changed image is restarted, whatever the restartPolicy', async () => {
  const { clock, workers, events, runtime } = bedOf()
  workers.updatePod({ type: 'ADDED', object: podOf({ restartPolicy: 'Never' }) })
  await clock.advance(3000)
  const containers = [containerOf('c', { image: 'nginx:2' })]
  workers.updatePod({ type: 'MODIFIED', object: podOf({ restartPolicy: 'Never', containers }, { generation: 2 }) })
  await clock.advance(3000)
  assert.ok(events.includes('Killing: Container c definition changed, will be restarted'))
  assert.deepEqual([mainOf(workers)?.restartCount, mainOf(workers)?.image], [1, 'docker.io/library/nginx:2'])
  assert.equal(statusOf(workers).phase, 'Running')
  const running = (await runtime.listContainers({ filter: { state: { state: 1 } } })).containers
  assert.equal(running.length, 1)
  await workers.stop()
})

test('a sidecar with a changed image is restarted, and the pod continues', async () => {
  const { clock, workers, events } = bedOf()
  const side = (image: string): Partial<Pod['spec']> => ({
    initContainers: [containerOf('side', { restartPolicy: 'Always', image })],
  })
  workers.updatePod({ type: 'ADDED', object: podOf(side('proxy:1')) })
  await clock.advance(3000)
  workers.updatePod({ type: 'MODIFIED', object: podOf(side('proxy:2'), { generation: 2 }) })
  await clock.advance(3000)
  assert.ok(events.includes('Killing: Init container side definition changed'))
  const [init] = statusOf(workers).initContainerStatuses ?? []
  assert.deepEqual([init?.restartCount, init?.image], [1, 'docker.io/library/proxy:2'])
  assert.equal(mainOf(workers)?.restartCount, 0)
  await workers.stop()
})

test('a pod whose sandbox disappeared restarts with its init containers, and counts the restarts', async () => {
  const { clock, workers, events, runtime } = bedOf()
  const initContainers = [containerOf('i', { command: ['sh', '-c', 'sleep 2'] })]
  workers.updatePod({ type: 'ADDED', object: podOf({ initContainers }) })
  await clock.advance(8000)
  const [sandbox] = (await runtime.listPodSandbox({})).items
  const before = statusOf(workers).podIP
  await runtime.stopPodSandbox({ podSandboxId: sandbox?.id ?? '' })
  await clock.advance(1500)
  assert.ok(events.includes('SandboxChanged: Pod sandbox changed, it will be killed and re-created.'))
  const { initContainerStatuses: [init] = [] } = statusOf(workers)
  assert.deepEqual([Object.keys(init?.state ?? {}), init?.restartCount], [['running'], 1])
  assert.deepEqual(mainOf(workers)?.state, { waiting: { reason: 'PodInitializing' } })
  assert.equal(mainOf(workers)?.lastState.terminated?.exitCode, 137)
  await clock.advance(5000)
  assert.deepEqual([Object.keys(mainOf(workers)?.state ?? {}), mainOf(workers)?.restartCount], [['running'], 1])
  assert.notEqual(statusOf(workers).podIP, before)
  await workers.stop()
})

test('a restarted kubelet also restarts a pod whose sandbox disappeared', async () => {
  const bed = bedOf()
  const initContainers = [containerOf('i', { command: ['sh', '-c', 'sleep 2'] })]
  bed.workers.updatePod({ type: 'ADDED', object: podOf({ initContainers }) })
  await bed.clock.advance(8000)
  const status = statusOf(bed.workers)
  await bed.workers.stop()
  const [sandbox] = (await bed.runtime.listPodSandbox({})).items
  await bed.runtime.stopPodSandbox({ podSandboxId: sandbox?.id ?? '' })
  const again = bed.restart()
  again.updatePod({ type: 'ADDED', object: { ...podOf({ initContainers }), status } })
  again.sourcesReady()
  await bed.clock.advance(1000)
  const { initContainerStatuses: [init] = [] } = statusOf(again)
  assert.deepEqual([Object.keys(init?.state ?? {}), init?.restartCount], [['running'], 1])
  await bed.clock.advance(8000)
  assert.deepEqual([Object.keys(mainOf(again)?.state ?? {}), mainOf(again)?.restartCount], [['running'], 1])
  await again.stop()
})

test('a pod with restartPolicy Never fails when its sandbox disappears', async () => {
  const { clock, workers, runtime } = bedOf()
  workers.updatePod({ type: 'ADDED', object: podOf({ restartPolicy: 'Never' }) })
  await clock.advance(3000)
  const [sandbox] = (await runtime.listPodSandbox({})).items
  await runtime.stopPodSandbox({ podSandboxId: sandbox?.id ?? '' })
  await clock.advance(5000)
  assert.equal(statusOf(workers).phase, 'Failed')
  assert.equal((await runtime.listPodSandbox({})).items.length, 1)
  await workers.stop()
})

test('a deleted pod ends without waiting for its image pull', async () => {
  const { clock, workers, deleted, runtime } = bedOf({}, {}, () => ({ pullImage: never }))
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(5000)
  const object = podOf({}, { deletionTimestamp: '2026-01-01T00:00:35Z', deletionGracePeriodSeconds: 30, generation: 2 })
  workers.updatePod({ type: 'MODIFIED', object })
  await clock.advance(2000)
  assert.deepEqual(deleted, ['/api/v1/namespaces/default/pods/web'])
  assert.deepEqual((await runtime.listPodSandbox({})).items, [])
  await workers.stop()
})

test('an aborted image pull does not block the next pull in the queue', async () => {
  const pulls: string[] = []
  const { clock, workers } = bedOf({}, {}, (runtime) => ({
    pullImage: (request, options) => {
      pulls.push(request.image?.image ?? '')
      return request.image?.image === 'slow:1' ? never() : runtime.pullImage(request, options)
    },
  }))
  const slow = podOf({ containers: [containerOf('c', { image: 'slow:1' })] }, { name: 'slow', uid: 'u2' })
  workers.updatePod({ type: 'ADDED', object: slow })
  await clock.advance(1000)
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(5000)
  assert.deepEqual(pulls, ['slow:1'])
  workers.updatePod({ type: 'DELETED', object: slow })
  await clock.advance(2000)
  assert.deepEqual(pulls, ['slow:1', 'nginx:1'])
  assert.equal(statusOf(workers).phase, 'Running')
  await workers.stop()
})

test('a pod whose deadline passes during an image pull is ended', async () => {
  const { clock, workers } = bedOf({}, {}, () => ({ pullImage: never }))
  workers.updatePod({ type: 'ADDED', object: podOf({ activeDeadlineSeconds: 10 }) })
  await clock.advance(12_000)
  assert.deepEqual([statusOf(workers).phase, statusOf(workers).reason], ['Failed', 'DeadlineExceeded'])
  await workers.stop()
})

test('a runtime call that hangs blocks no other pod, and times out after two minutes', async () => {
  let hangs = 2
  const { clock, workers, events } = bedOf({}, {}, (runtime) => ({
    createContainer: (request, options) =>
      request.config?.image?.userSpecifiedImage === 'bad:1' && hangs-- > 0
        ? never()
        : runtime.createContainer(request, options),
  }))
  const containers = [containerOf('c', { image: 'bad:1' })]
  workers.updatePod({ type: 'ADDED', object: podOf({ containers }, { name: 'bad', uid: 'u2' }) })
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(5000)
  assert.equal(statusOf(workers).phase, 'Running')
  await clock.advance(118_000)
  const bad = (): ContainerStatus | undefined =>
    workers.registry.find('default', 'bad')?.pod.status.containerStatuses?.[0]
  assert.deepEqual(bad()?.state.waiting, { reason: 'CreateContainerError', message: 'context deadline exceeded' })
  assert.ok(events.includes('Failed: Error: context deadline exceeded'))
  await clock.advance(150_000)
  assert.deepEqual(Object.keys(bad()?.state ?? {}), ['running'])
  await workers.stop()
})

test('a failed relist of the runtime’s containers is retried', async () => {
  let hangs = true
  const { clock, workers } = bedOf({}, {}, (runtime) => ({
    listContainers: (request, options) => (hangs ? never() : runtime.listContainers(request, options)),
  }))
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(60_000)
  assert.equal(workers.listedMs, undefined)
  hangs = false
  await clock.advance(65_000)
  assert.equal(statusOf(workers).phase, 'Running')
  await workers.stop()
})

test('a pod runs with the handler of its RuntimeClass, and reports a missing RuntimeClass', async () => {
  const { clock, workers, events, objects, runtime } = bedOf()
  workers.updatePod({ type: 'ADDED', object: podOf({ runtimeClassName: 'fast' }) })
  await clock.advance(2000)
  const prefix = 'FailedCreatePodSandBox: Failed to create pod sandbox: '
  assert.deepEqual(events, [`${prefix}runtimeclass.node.k8s.io "fast" not found`])
  const path = '/apis/node.k8s.io/v1/runtimeclasses/fast'
  objects.set(path, { metadata: { name: 'fast' }, handler: 'kata' })
  await clock.advance(20_000)
  const unknown = 'rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "kata" is configured'
  assert.equal(events.at(-1), `${prefix}${unknown}`)
  objects.set(path, { metadata: { name: 'fast' }, handler: 'runc' })
  await clock.advance(20_000)
  assert.equal((await runtime.listPodSandbox({})).items[0]?.runtimeHandler, 'runc')
  assert.equal(statusOf(workers).phase, 'Running')
  await workers.stop()
})
