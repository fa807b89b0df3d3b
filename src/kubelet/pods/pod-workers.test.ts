import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'

import type { ProbeAnswer } from '../probes/probe-action.ts'
import { bedOf, conditionIn, containerOf, podOf } from './worker.fixture.ts'

test('a simple pod causes three status patches: admitted, with a sandbox, running', async () => {
  const { clock, workers, patches, events } = bedOf()
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(5000)
  const [admitted, sandboxed, running, ...rest] = patches
  assert.ok(admitted !== undefined && sandboxed !== undefined && running !== undefined)
  assert.equal(conditionIn(admitted, 'PodReadyToStartContainers'), 'False')
  assert.equal(conditionIn(admitted, 'Initialized'), 'True')
  assert.deepEqual(admitted.status['containerStatuses'], [
    {
      image: 'nginx:1',
      imageID: '',
      lastState: {},
      name: 'c',
      ready: false,
      restartCount: 0,
      started: false,
      state: { waiting: { reason: 'ContainerCreating' } },
    },
  ])
  assert.deepEqual(Object.keys(sandboxed.status).sort(), ['$setElementOrder/conditions', 'conditions'])
  assert.equal(conditionIn(sandboxed, 'PodReadyToStartContainers'), 'True')
  assert.equal(running.status['phase'], 'Running')
  assert.equal(running.status['podIP'], '10.88.0.2')
  assert.equal(conditionIn(running, 'Ready'), 'True')
  assert.deepEqual(rest, [])
  assert.deepEqual(
    events.map((event) => event.split(':')[0]),
    ['Pulling', 'Pulled', 'Created', 'Started'],
  )
  await workers.stop()
})

test('a deleted pod stops within its grace period, gets a last status patch, and is removed', async () => {
  const { clock, workers, patches, events, deleted, runtime } = bedOf()
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(5000)
  const object = podOf({}, { deletionTimestamp: '2026-01-01T00:00:35Z', deletionGracePeriodSeconds: 30, generation: 2 })
  patches.length = 0
  workers.updatePod({ type: 'MODIFIED', object })
  await clock.advance(5000)
  assert.ok(events.includes('Killing: Stopping container c'))
  assert.equal(patches[0]?.status['observedGeneration'], 2)
  const last = patches.at(-1)
  assert.equal(last?.status['phase'], 'Failed')
  assert.ok(last !== undefined && conditionIn(last, 'PodReadyToStartContainers') === 'False')
  assert.deepEqual(deleted, ['/api/v1/namespaces/default/pods/web'])
  assert.deepEqual((await runtime.listPodSandbox({})).items, [])
  assert.deepEqual((await runtime.listContainers({})).containers, [])
  assert.equal(workers.registry.find('default', 'web'), undefined)
  await workers.stop()
})

test('a failing container restarts at once, then after 10 and 20 seconds, and its status shows the backoff', async () => {
  const { clock, workers, events, patches, runtime } = bedOf()
  const failing = containerOf('c', { command: ['sh', '-c', 'exit 3'] })
  workers.updatePod({ type: 'ADDED', object: podOf({ containers: [failing] }) })
  await clock.advance(25_000)
  const counts = patches.flatMap(
    ({ status }) => (status['containerStatuses'] as { restartCount: number }[] | undefined) ?? [],
  )
  assert.equal(Math.max(...counts.map(({ restartCount }) => restartCount)), 2)
  assert.ok(events.includes('BackOff: Back-off restarting failed container c in pod web_default(u1)'))
  const waits = patches.map(({ status }) => JSON.stringify(status['containerStatuses'] ?? ''))
  assert.ok(waits.some((text) => text.includes('back-off 10s restarting failed container=c pod=web_default(u1)')))
  assert.ok((await runtime.listContainers({})).containers.length <= 3)
  await workers.stop()
})

test('init containers run in order, a sidecar keeps running, and each step is in the pod status', async () => {
  const { clock, workers, patches } = bedOf()
  const initContainers = [
    containerOf('i1', { command: ['sh', '-c', 'sleep 3'] }),
    containerOf('side', { restartPolicy: 'Always' }),
  ]
  workers.updatePod({ type: 'ADDED', object: podOf({ initContainers }) })
  await clock.advance(10_000)
  const status = workers.registry.find('default', 'web')?.pod.status
  assert.equal(status?.phase, 'Running')
  assert.deepEqual(
    status?.initContainerStatuses?.map(({ name, ready, started, state }) => [name, ready, started, Object.keys(state)]),
    [
      ['i1', true, false, ['terminated']],
      ['side', true, true, ['running']],
    ],
  )
  const first = patches[0]?.status.conditions?.find(({ type }) => type === 'Initialized') as { message?: string }
  assert.equal(first.message, 'containers with incomplete status: [i1 side]')
  await workers.stop()
})

test('a failed image pull is retried later, with upstream’s messages', async () => {
  const { clock, workers, events } = bedOf({
    pull: (image) => {
      throw new Error(`${image}: not found`)
    },
  })
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(3000)
  const [status] = workers.registry.find('default', 'web')?.pod.status.containerStatuses ?? []
  assert.equal(status?.state.waiting?.reason, 'ImagePullBackOff')
  assert.match(status?.state.waiting?.message ?? '', /^Back-off pulling image "nginx:1": ErrImagePull: /)
  const reasons = events.map((event) => event.split(':').slice(0, 2).join(':').slice(0, 40))
  assert.deepEqual(reasons, [
    'Pulling: Pulling image "nginx',
    'Failed: Failed to pull image "nginx',
    'Failed: Error',
    'BackOff: Back-off pulling image "nginx',
    'Failed: Error',
  ])
  await clock.advance(10_000)
  await workers.stop()
})

test('an invalid image name is not pulled', async () => {
  const { clock, workers } = bedOf()
  workers.updatePod({ type: 'ADDED', object: podOf({ containers: [containerOf('c', { image: 'Bad_Image:::x' })] }) })
  await clock.advance(2000)
  const [status] = workers.registry.find('default', 'web')?.pod.status.containerStatuses ?? []
  assert.deepEqual(status?.state.waiting, {
    reason: 'InvalidImageName',
    message:
      'Failed to apply default image tag "Bad_Image:::x": couldn\'t parse image name "Bad_Image:::x": invalid reference format: repository name (library/Bad_Image) must be lowercase',
  })
  await workers.stop()
})

test('a restarted kubelet adopts running containers and starts nothing twice', async () => {
  const bed = bedOf()
  bed.workers.updatePod({ type: 'ADDED', object: podOf() })
  await bed.clock.advance(5000)
  const status = bed.workers.registry.find('default', 'web')?.pod.status ?? {}
  await bed.workers.stop()
  const before = (await bed.runtime.listContainers({})).containers.map(({ id }) => id)
  const again = bed.restart()
  bed.events.length = 0
  bed.patches.length = 0
  again.updatePod({ type: 'ADDED', object: { ...podOf(), status } })
  again.sourcesReady()
  await bed.clock.advance(20_000)
  assert.deepEqual(
    (await bed.runtime.listContainers({})).containers.map(({ id }) => id),
    before,
  )
  assert.deepEqual([bed.events, bed.patches], [[], []])
  assert.equal(again.registry.find('default', 'web')?.containers.get('c')?.current?.containerId, before[0])
  await again.stop()
})

test('pods that the API server no longer has are removed from the runtime once all pods are known', async () => {
  const bed = bedOf()
  bed.workers.updatePod({ type: 'ADDED', object: podOf() })
  await bed.clock.advance(5000)
  await bed.workers.stop()
  const again = bed.restart()
  await bed.clock.advance(5000)
  assert.equal((await bed.runtime.listPodSandbox({})).items.length, 1)
  again.sourcesReady()
  await bed.clock.advance(5000)
  assert.deepEqual((await bed.runtime.listPodSandbox({})).items, [])
  await again.stop()
})

test('a failed write of the pod status is retried when the API server is back', async () => {
  const { clock, workers, patches, fault } = bedOf()
  fault.isDown = true
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await clock.advance(60_000)
  fault.isDown = false
  await clock.advance(60_000)
  assert.equal(patches.at(-1)?.status['phase'], 'Running')
  await workers.stop()
})

test('a pod is ended after activeDeadlineSeconds', async () => {
  const { clock, workers, patches } = bedOf()
  workers.updatePod({ type: 'ADDED', object: podOf({ activeDeadlineSeconds: 10 }) })
  await clock.advance(15_000)
  const last = patches.at(-1)?.status
  assert.deepEqual(
    [last?.['phase'], last?.['reason'], last?.['message']],
    ['Failed', 'DeadlineExceeded', 'Pod was active on the node longer than the specified deadline'],
  )
  await workers.stop()
})

test('a pod that does not fit on the node is rejected', async () => {
  const { clock, workers, patches, events } = bedOf()
  const resources = { requests: { cpu: '500' } }
  workers.updatePod({ type: 'ADDED', object: podOf({ containers: [containerOf('c', { resources })] }) })
  await clock.advance(2000)
  assert.equal(patches.at(-1)?.status['reason'], 'OutOfcpu')
  assert.deepEqual(events, [
    "OutOfcpu: Node didn't have enough resource: cpu, requested: 500000, used: 0, capacity: 2000",
  ])
  await workers.stop()
})

test('a container that fails its liveness probe is killed and restarted', async () => {
  const runProbe = async (): Promise<ProbeAnswer> => ({
    isFine: false,
    output: 'HTTP probe failed with statuscode: 500',
  })
  const { clock, workers, events } = bedOf({}, { runProbe })
  const livenessProbe = { httpGet: { path: '/', port: 80 }, periodSeconds: 1, failureThreshold: 3 }
  workers.updatePod({ type: 'ADDED', object: podOf({ containers: [containerOf('c', { livenessProbe })] }) })
  await clock.advance(8000)
  assert.ok(events.includes('Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 500'))
  assert.ok(events.includes('Killing: Container c failed liveness probe, will be restarted'))
  assert.equal(workers.registry.find('default', 'web')?.pod.status.containerStatuses?.[0]?.restartCount, 1)
  await workers.stop()
})

test('a pod whose container exits with 0 and is not restarted succeeds, and its sandbox is stopped', async () => {
  const { clock, workers, patches, runtime } = bedOf()
  const object = podOf({ restartPolicy: 'Never', containers: [containerOf('c', { command: ['sh', '-c', 'sleep 1'] })] })
  workers.updatePod({ type: 'ADDED', object })
  await clock.advance(8000)
  const last = patches.at(-1)
  assert.equal(last?.status['phase'], 'Succeeded')
  assert.ok(last !== undefined && conditionIn(last, 'PodReadyToStartContainers') === 'False')
  assert.equal((await runtime.listPodSandbox({})).items[0]?.state, 1)
  await workers.stop()
})

test('a critical pod that does not fit preempts another pod and is admitted', async () => {
  const { clock, workers, events } = bedOf()
  const asking = (cpu: string): Partial<Pod['spec']> => ({
    containers: [containerOf('c', { resources: { requests: { cpu } } })],
  })
  workers.updatePod({ type: 'ADDED', object: podOf(asking('1500m'), { name: 'small', uid: 'u1' }) })
  await clock.advance(5000)
  const critical = podOf({ ...asking('1'), priority: 2_000_000_000 }, { name: 'critical', uid: 'u2' })
  workers.updatePod({ type: 'ADDED', object: critical })
  await clock.advance(60_000)
  const phases = Array.from(workers.registry.pods(), ({ pod: { metadata, status } }) => [
    metadata.name,
    status.phase,
    status.reason,
  ])
  assert.deepEqual(phases, [
    ['small', 'Failed', 'Preempting'],
    ['critical', 'Running', undefined],
  ])
  assert.ok(events.includes('Preempting: Preempted in order to admit critical pod'))
  const plain = podOf(asking('1500m'), { name: 'plain', uid: 'u3' })
  workers.updatePod({ type: 'ADDED', object: plain })
  await clock.advance(5000)
  assert.equal(workers.registry.find('default', 'plain')?.pod.status.reason, 'OutOfcpu')
  await workers.stop()
})

test('a pod with hostUsers=false has a user namespace in its sandbox, containers and files', async () => {
  const created: { readonly users: unknown; readonly mounts: readonly { readonly uidMappings?: unknown }[] }[] = []
  const { clock, workers } = bedOf({}, {}, (runtime) => ({
    createContainer: (request, options) => {
      const { mounts = [], linux } = request.config ?? {}
      created.push({ users: linux?.securityContext?.namespaceOptions?.usernsOptions, mounts })
      return runtime.createContainer(request, options)
    },
  }))
  workers.updatePod({ type: 'ADDED', object: podOf({ hostUsers: false }) })
  await clock.advance(5000)
  assert.equal(workers.registry.find('default', 'web')?.pod.status.phase, 'Running')
  const uids = [{ hostId: 65_536, containerId: 0, length: 65_536 }]
  const [container] = created
  assert.deepEqual(container?.users, { mode: 0, uids, gids: uids })
  assert.ok((container?.mounts ?? []).length > 0)
  for (const mount of container?.mounts ?? []) assert.deepEqual(mount.uidMappings, uids)
  await workers.stop()
})

test('a pod with hostUsers=false does not start on a runtime without user namespaces', async () => {
  const { clock, workers, events, runtime } = bedOf({}, {}, (all) => ({
    status: async (...args) => ({ ...(await all.status(...args)), runtimeHandlers: [] }),
  }))
  workers.updatePod({ type: 'ADDED', object: podOf({ hostUsers: false }) })
  await clock.advance(1000)
  const why = "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
  assert.deepEqual(events, [`FailedCreatePodSandBox: Failed to create pod sandbox: ${why}`])
  assert.deepEqual((await runtime.listPodSandbox({})).items, [])
  await workers.stop()
})
