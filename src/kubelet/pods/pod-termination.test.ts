import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodStatus, Probe } from '#apis/core/v1.ts'

import type { ProbeAnswer } from '../probes/probe-action.ts'
import { type Bed, bedOf, containerOf, podOf } from './worker.fixture.ts'

const PROBE: Probe = { httpGet: { path: '/', port: 80 }, periodSeconds: 1, failureThreshold: 1 }
const DELETED = { deletionTimestamp: '2026-01-01T00:00:35Z', deletionGracePeriodSeconds: 30, generation: 2 }

interface SlowBed extends Bed {
  /** Result of all probes. */
  isFine: boolean
}

/** Containers that take 20 seconds to end after SIGTERM. */
function slowBed(): SlowBed {
  const runProbe = async (): Promise<ProbeAnswer> =>
    bed.isFine ? { isFine: true } : { isFine: false, output: 'HTTP probe failed with statuscode: 500' }
  const bed = { ...bedOf({ behavior: () => ({ stopMs: 20_000 }) }, { runProbe }), isFine: true }
  return bed
}

const conditionOf = ({ conditions = [] }: PodStatus, name: string): string | undefined =>
  conditions.find(({ type }) => type === name)?.status

const readiness = (bed: Bed): unknown[] => {
  const status = bed.workers.registry.find('default', 'web')?.pod.status ?? {}
  const { ready } = status.containerStatuses?.[0] ?? {}
  return [status.phase, ready, conditionOf(status, 'ContainersReady'), conditionOf(status, 'Ready')]
}

describe('readiness probes of a terminating pod', () => {
  const spec = { containers: [containerOf('c', { readinessProbe: PROBE })] }

  it('set the pod to not ready while its containers stop', async () => {
    const bed = slowBed()
    bed.workers.updatePod({ type: 'ADDED', object: podOf(spec) })
    await bed.clock.advance(5000)
    bed.workers.updatePod({ type: 'MODIFIED', object: podOf(spec, DELETED) })
    await bed.clock.advance(3000)
    assert.deepEqual(readiness(bed), ['Running', true, 'True', 'True'])
    bed.isFine = false
    bed.patches.length = 0
    await bed.clock.advance(3000)
    assert.deepEqual(readiness(bed), ['Running', false, 'False', 'False'])
    const [patch] = bed.patches
    const statuses = patch?.status['containerStatuses'] as { ready: boolean }[]
    assert.deepEqual([bed.patches.length, statuses[0]?.ready], [1, false])
    await bed.clock.advance(20_000)
    assert.deepEqual(bed.deleted, ['/api/v1/namespaces/default/pods/web'])
    await bed.workers.stop()
  })

  it('keep the phase of a pod past its deadline until its containers have ended', async () => {
    const bed = slowBed()
    bed.workers.updatePod({ type: 'ADDED', object: podOf({ ...spec, activeDeadlineSeconds: 5 }) })
    await bed.clock.advance(6000)
    bed.isFine = false
    await bed.clock.advance(3000)
    assert.deepEqual(readiness(bed), ['Running', false, 'False', 'False'])
    await bed.clock.advance(20_000)
    const { phase, reason } = bed.workers.registry.find('default', 'web')?.pod.status ?? {}
    assert.deepEqual([phase, reason], ['Failed', 'DeadlineExceeded'])
    await bed.workers.stop()
  })
})

describe('liveness probes of a terminating pod', () => {
  it('end for all containers at once, including sidecars', async () => {
    const bed = slowBed()
    const side = containerOf('side', { restartPolicy: 'Always', livenessProbe: PROBE })
    const spec = { initContainers: [side], containers: [containerOf('c', { livenessProbe: PROBE })] }
    bed.workers.updatePod({ type: 'ADDED', object: podOf(spec) })
    await bed.clock.advance(5000)
    bed.workers.updatePod({ type: 'MODIFIED', object: podOf(spec, DELETED) })
    bed.isFine = false
    await bed.clock.advance(15_000)
    assert.deepEqual(
      bed.events.filter((event) => event.startsWith('Unhealthy')),
      [],
    )
    await bed.workers.stop()
  })

  it('have no effect if they were running when the termination began', async () => {
    const answer = Promise.withResolvers<ProbeAnswer>()
    const bed = bedOf({ behavior: () => ({ stopMs: 20_000 }) }, { runProbe: () => answer.promise })
    const spec = { containers: [containerOf('c', { livenessProbe: PROBE })] }
    bed.workers.updatePod({ type: 'ADDED', object: podOf(spec) })
    await bed.clock.advance(5000)
    bed.workers.updatePod({ type: 'MODIFIED', object: podOf(spec, DELETED) })
    await bed.clock.advance(1000)
    answer.resolve({ isFine: false, output: 'HTTP probe failed with statuscode: 500' })
    await bed.clock.advance(5000)
    assert.deepEqual(
      bed.events.filter((event) => event.startsWith('Unhealthy')),
      [],
    )
    await bed.workers.stop()
  })
})

describe('a pod that kubelet admission rejects', () => {
  it('has observedGeneration, and no conditions of a running pod', async () => {
    const { clock, workers, patches } = bedOf()
    const resources = { requests: { cpu: '500' } }
    const pod = podOf({ containers: [containerOf('c', { resources })] }, { generation: 3 })
    const at = '2026-01-01T00:00:00Z'
    const conditions = ['PodScheduled', 'example.com/mine'].map((type) => ({
      type,
      status: 'True',
      lastProbeTime: null,
      lastTransitionTime: at,
    }))
    workers.updatePod({ type: 'ADDED', object: { ...pod, status: { ...pod.status, conditions } } })
    await clock.advance(2000)
    assert.equal(patches.length, 1)
    const { status } = patches[0] ?? {}
    assert.deepEqual([status?.['observedGeneration'], status?.['reason']], [3, 'OutOfcpu'])
    assert.deepEqual(status?.conditions, [{ $patch: 'delete', type: 'PodScheduled' }])
    await workers.stop()
  })
})

describe('a container that disappears while the kubelet stops it', () => {
  it('does not delay the removal of the pod', async () => {
    const { clock, workers, deleted, patches } = bedOf({}, {}, (runtime) => ({
      stopContainer: async ({ containerId }) => {
        await runtime.removeContainer({ containerId })
        return {}
      },
    }))
    workers.updatePod({ type: 'ADDED', object: podOf() })
    await clock.advance(3000)
    workers.updatePod({ type: 'MODIFIED', object: podOf({}, DELETED) })
    await clock.advance(3000)
    assert.deepEqual(deleted, ['/api/v1/namespaces/default/pods/web'])
    const [ended] = (patches.at(-1)?.status['containerStatuses'] ?? []) as {
      state: { terminated?: { reason: string } }
    }[]
    assert.equal(ended?.state.terminated?.reason, 'ContainerStatusUnknown')
    await workers.stop()
  })
})
