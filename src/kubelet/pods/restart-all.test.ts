import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Container, PodStatus } from '#apis/core/v1.ts'

import { type Bed, bedOf, containerOf, podOf } from './worker.fixture.ts'

const RULE: Partial<Container> = {
  restartPolicy: 'Never',
  restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [88] } }],
}

const statusOf = (bed: Bed): PodStatus => Array.from(bed.workers.registry.pods(), ({ pod }) => pod.status)[0] ?? {}

/** By container name. */
const countsOf = (status: PodStatus): Record<string, number> =>
  Object.fromEntries(
    [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map(({ name, restartCount }) => [
      name,
      restartCount,
    ]),
  )

const idOf = ({ containerStatuses = [] }: PodStatus, name: string): string =>
  containerStatuses.find((status) => status.name === name)?.containerID?.replace(/^.*:\/\//, '') ?? ''

function podWithRule(): ReturnType<typeof podOf> {
  return podOf({
    restartPolicy: 'Never',
    initContainers: [containerOf('init', { command: ['true'] }), containerOf('side', { restartPolicy: 'Always' })],
    containers: [containerOf('worker', RULE), containerOf('other')],
  })
}

test('an exit code with a RestartAllContainers rule restarts all containers of the pod in the same sandbox', async () => {
  const bed = bedOf()
  bed.workers.updatePod({ type: 'ADDED', object: podWithRule() })
  await bed.clock.advance(10_000)
  const before = statusOf(bed)
  assert.equal(before.phase, 'Running')
  assert.equal(before.conditions?.find(({ type }) => type === 'AllContainersRestarting')?.status, 'False')
  bed.runtime.end(idOf(before, 'worker'), { exitCode: 88 })
  await bed.clock.advance(30_000)
  const after = statusOf(bed)
  assert.equal(after.phase, 'Running')
  assert.deepEqual(countsOf(after), { init: 1, side: 1, worker: 1, other: 1 })
  assert.equal(after.podIP, before.podIP)
  const { terminated } = after.containerStatuses?.find(({ name }) => name === 'other')?.lastState ?? {}
  assert.equal(terminated?.reason, 'RestartingAllContainers')
  assert.equal(terminated?.exitCode, 137)
  const conditions = bed.patches.flatMap(({ status }) => status.conditions ?? [])
  const statuses = conditions.filter(({ type }) => type === 'AllContainersRestarting').map(({ status }) => status)
  assert.deepEqual(statuses, ['False', 'True', 'False'])
  assert.ok(!bed.patches.some(({ status }) => status['phase'] === 'Failed'))
  assert.ok(bed.events.includes('Killing: killing'))
  const { containers } = await bed.runtime.listContainers({})
  assert.equal(containers.length, 4)
  await bed.workers.stop()
})

test('an exit code without a RestartAllContainers rule restarts no other container', async () => {
  const bed = bedOf()
  bed.workers.updatePod({ type: 'ADDED', object: podWithRule() })
  await bed.clock.advance(10_000)
  bed.runtime.end(idOf(statusOf(bed), 'worker'), { exitCode: 3 })
  await bed.clock.advance(30_000)
  const after = statusOf(bed)
  assert.deepEqual(countsOf(after), { init: 0, side: 0, worker: 0, other: 0 })
  assert.equal(after.containerStatuses?.find(({ name }) => name === 'worker')?.state.terminated?.exitCode, 3)
  await bed.workers.stop()
})

test('the restart of all containers continues after a restart of the kubelet', async () => {
  const bed = bedOf()
  bed.workers.updatePod({ type: 'ADDED', object: podWithRule() })
  await bed.clock.advance(10_000)
  const status = statusOf(bed)
  await bed.workers.stop()
  bed.runtime.end(idOf(status, 'worker'), { exitCode: 88 })
  bed.runtime.end(idOf(status, 'other'), { exitCode: 137 })
  const next = bed.restart()
  next.updatePod({ type: 'ADDED', object: { ...podWithRule(), status } })
  next.sourcesReady()
  await bed.clock.advance(30_000)
  const [view] = next.registry.pods()
  assert.equal(view?.pod.status.phase, 'Running')
  assert.deepEqual(countsOf(view?.pod.status ?? {}), { init: 1, side: 1, worker: 1, other: 1 })
  await next.stop()
})
