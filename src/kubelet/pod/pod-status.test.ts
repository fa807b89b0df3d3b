import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Container, Pod, PodSpec, PodStatus } from '#apis/core/v1.ts'

import { crashLoopMessage, nextBackOff, retryMs } from './back-off.ts'
import { planContainers } from './container-plan.ts'
import { type BackOff, type ContainerRecord, recordsOf } from './container-runs.ts'
import { podStatusOf, type PodView } from './pod-status.ts'
import { statusPatch } from './status-patch.ts'

const NOW = Date.UTC(2026, 0, 1)
const T = '2026-01-01T00:00:00Z'

const container = (name: string, more: Partial<Container> = {}): Container => ({
  name,
  image: 'busybox:1',
  resources: {},
  ...more,
})

function podOf(spec: Partial<PodSpec>): Pod {
  return {
    metadata: { name: 'p', namespace: 'default', uid: 'u', generation: 1 },
    spec: { restartPolicy: 'Always', containers: [container('c')], ...spec },
    status: {},
  }
}

const BEFORE: PodStatus = {
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: T }],
}

function viewOf(records: readonly ContainerRecord[], more: Partial<PodView> = {}): PodView {
  return {
    records,
    hasSandbox: true,
    isEnding: false,
    hostIps: ['10.0.0.1'],
    podIps: ['10.1.0.2'],
    startTime: T,
    ...more,
  }
}

type Doing = 'running' | 'ready' | number

/** A record that runs, is ready, or has ended with an exit code. */
function set(record: ContainerRecord | undefined, doing: Doing): void {
  if (record === undefined) return
  record.run = { id: `containerd://${record.spec.name}`, startedMs: NOW }
  record.isStarted = typeof doing === 'string'
  record.isReady = doing === 'ready'
  if (typeof doing === 'number')
    record.run.end = { exitCode: doing, finishedMs: NOW, reason: doing === 0 ? 'Completed' : 'Error' }
}

function summaryOf(
  spec: Partial<PodSpec>,
  doing: readonly (Doing | undefined)[],
  more: Partial<PodView> = {},
): string[] {
  const pod = podOf(spec)
  const records = recordsOf(pod.spec)
  for (const [at, each] of doing.entries()) if (each !== undefined) set(records[at], each)
  const { phase, conditions = [] } = podStatusOf(pod, BEFORE, viewOf(records, more), NOW)
  const summaries = conditions
    .filter(({ type }) => type !== 'PodScheduled')
    .map(({ type, status, reason = '', message = '' }) =>
      [`${type}=${status}`, reason, message].filter(Boolean).join(' '),
    )
  return [phase ?? '', ...summaries]
}

describe('status of a pod', () => {
  const inits = [container('i1'), container('side', { restartPolicy: 'Always' }), container('i2')]
  const cases: readonly [what: string, actual: string[], expected: string[]][] = [
    [
      'is Pending without a sandbox',
      summaryOf({}, [], { hasSandbox: false }),
      [
        'Pending',
        'PodReadyToStartContainers=False',
        'Initialized=True',
        'Ready=False ContainersNotReady containers with unready status: [c]',
        'ContainersReady=False ContainersNotReady containers with unready status: [c]',
      ],
    ],
    [
      'is Running while a container runs',
      summaryOf({}, ['ready']),
      ['Running', 'PodReadyToStartContainers=True', 'Initialized=True', 'Ready=True', 'ContainersReady=True'],
    ],
    [
      'is Pending with Initialized=False before init containers start',
      summaryOf({ initContainers: inits }, []),
      [
        'Pending',
        'PodReadyToStartContainers=True',
        'Initialized=False ContainersNotInitialized containers with incomplete status: [i1 side i2]',
        'Ready=False ContainersNotReady containers with unready status: [side c]',
        'ContainersReady=False ContainersNotReady containers with unready status: [side c]',
      ],
    ],
    [
      'contains the readiness of a sidecar',
      summaryOf({ initContainers: inits }, [0, 'ready', 'running']),
      [
        'Pending',
        'PodReadyToStartContainers=True',
        'Initialized=False ContainersNotInitialized containers with incomplete status: [i2]',
        'Ready=False ContainersNotReady containers with unready status: [c]',
        'ContainersReady=False ContainersNotReady containers with unready status: [c]',
      ],
    ],
    [
      'is Failed if an init container fails for good',
      summaryOf({ restartPolicy: 'Never', initContainers: [container('i')] }, [1]),
      [
        'Failed',
        'PodReadyToStartContainers=True',
        'Initialized=False ContainersNotInitialized containers with incomplete status: [i]',
        'Ready=False PodFailed',
        'ContainersReady=False PodFailed',
      ],
    ],
    [
      'is Succeeded if all containers succeeded',
      summaryOf({ restartPolicy: 'OnFailure' }, [0], { hasSandbox: false }),
      [
        'Succeeded',
        'PodReadyToStartContainers=False',
        'Initialized=True PodCompleted',
        'Ready=False PodCompleted',
        'ContainersReady=False PodCompleted',
      ],
    ],
    [
      'is Failed if one container failed',
      summaryOf({ restartPolicy: 'Never', containers: [container('a'), container('b')] }, [0, 7]),
      [
        'Failed',
        'PodReadyToStartContainers=True',
        'Initialized=True',
        'Ready=False PodFailed',
        'ContainersReady=False PodFailed',
      ],
    ],
    [
      'is final for a deleted pod, whatever its restartPolicy',
      summaryOf({}, [0], { isEnding: true, hasSandbox: false }).slice(0, 2),
      ['Succeeded', 'PodReadyToStartContainers=False'],
    ],
    [
      'is Failed if the pod was deleted before it ran',
      summaryOf({}, [undefined], { isEnding: true, hasSandbox: false }).slice(0, 1),
      ['Failed'],
    ],
    [
      'is Failed if the pod was deleted before its init containers ended',
      summaryOf({ initContainers: [container('i')] }, [undefined, undefined], { isEnding: true }).slice(0, 1),
      ['Failed'],
    ],
    ['stays Running after a crash that is retried', summaryOf({}, [3]).slice(0, 1), ['Running']],
    [
      'reports a missing condition of a readiness gate',
      summaryOf({ readinessGates: [{ conditionType: 'www.example.com/ok' }] }, ['ready']).slice(3),
      [
        'Ready=False ReadinessGatesNotReady corresponding condition of pod readiness gate "www.example.com/ok" does not exist.',
        'ContainersReady=True',
      ],
    ],
    [
      'is Failed if the pod exceeded its deadline',
      summaryOf({}, [137], { isEnding: true, verdict: { reason: 'DeadlineExceeded', message: 'too long' } }).slice(
        0,
        1,
      ),
      ['Failed'],
    ],
  ]
  for (const [what, actual, expected] of cases) it(what, () => assert.deepEqual(actual, expected))

  it('has ContainerStatusUnknown for a container that was never observed, or PodInitializing if it was not due', () => {
    const pod = podOf({ initContainers: [container('i'), container('j')] })
    const view = viewOf(recordsOf(pod.spec), { isEnding: true, hasSandbox: false })
    const { initContainerStatuses, containerStatuses } = podStatusOf(pod, BEFORE, view, NOW)
    const states = [...(initContainerStatuses ?? []), ...(containerStatuses ?? [])].map(({ state }) => state)
    const reasons = states.map(({ terminated, waiting }) => terminated?.reason ?? waiting?.reason)
    assert.deepEqual(reasons, ['ContainerStatusUnknown', 'PodInitializing', 'PodInitializing'])
  })

  it('has main containers sorted by name and init containers in order', () => {
    const pod = podOf({
      initContainers: [container('z'), container('a')],
      containers: [container('d'), container('b')],
    })
    const status = podStatusOf(pod, BEFORE, viewOf(recordsOf(pod.spec)), NOW)
    assert.deepEqual(
      status.initContainerStatuses?.map(({ name }) => name),
      ['z', 'a'],
    )
    assert.deepEqual(
      status.containerStatuses?.map(({ name }) => name),
      ['b', 'd'],
    )
    assert.deepEqual(status.containerStatuses?.[0]?.state, { waiting: { reason: 'PodInitializing' } })
  })

  it('yields a patch with only the changed fields and the order of conditions', () => {
    const pod = podOf({})
    const records = recordsOf(pod.spec)
    const first = podStatusOf(pod, BEFORE, viewOf(records, { hasSandbox: false, podIps: [] }), NOW)
    const sandbox = podStatusOf(pod, first, viewOf(records, { podIps: [] }), NOW + 1000)
    const order = ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled']
    assert.deepEqual(statusPatch('u', first, sandbox), {
      metadata: { uid: 'u' },
      status: {
        '$setElementOrder/conditions': order.map((type) => ({ type })),
        conditions: [{ lastTransitionTime: '2026-01-01T00:00:01Z', status: 'True', type: 'PodReadyToStartContainers' }],
      },
    })
    assert.equal(
      statusPatch('u', sandbox, podStatusOf(pod, sandbox, viewOf(records, { podIps: [] }), NOW + 2000)),
      undefined,
    )
  })
})

describe('container plan of a pod', () => {
  const spec: PodSpec = {
    restartPolicy: 'OnFailure',
    initContainers: [container('i1'), container('side', { restartPolicy: 'Always' }), container('i2')],
    containers: [container('a'), container('b')],
  }
  const cases: readonly [what: string, doing: readonly (Doing | undefined)[], start: string, stop: string][] = [
    ['starts the first init container first', [], 'i1', ''],
    ['starts nothing while the first init container runs', ['running'], '', ''],
    ['restarts the first init container when it failed', [1], 'i1', ''],
    ['starts the sidecar when the first init container has ended', [0], 'side', ''],
    ['starts the next init container while the sidecar runs', [0, 'running'], 'i2', ''],
    ['starts all main containers together', [0, 'ready', 0], 'a b', ''],
    ['restarts a failed container', [0, 'ready', 0, 1, 'running'], 'a', ''],
    ['restarts a failed sidecar while main containers run', [0, 1, 0, 'ready', 'running'], 'side', ''],
    ['stops the sidecar when all main containers have ended', [0, 'ready', 0, 0, 0], '', 'side'],
  ]
  for (const [what, doing, start, stop] of cases) {
    it(what, () => {
      const records = recordsOf(spec)
      for (const [at, each] of doing.entries()) if (each !== undefined) set(records[at], each)
      const plan = planContainers(spec, records, false)
      const names = (list: readonly ContainerRecord[]): string => list.map((record) => record.spec.name).join(' ')
      assert.deepEqual([names(plan.start), names(plan.stop)], [start, stop])
    })
  }
})

describe('restart backoff of a container', () => {
  it('is zero at first, then 10 s, and doubles up to 5 min', () => {
    let backOff: BackOff | undefined
    const waits: string[] = []
    let nowMs = 0
    for (let turn = 0; turn < 8; turn++) {
      waits.push(String((retryMs(backOff, nowMs) - nowMs) / 1000))
      nowMs = retryMs(backOff, nowMs)
      backOff = nextBackOff(backOff, nowMs, nowMs)
    }
    assert.equal(waits.join(' '), '0 10 20 40 80 160 300 300')
  })

  it('resets after ten minutes without a failure', () => {
    const backOff = { delayMs: 300_000, updatedMs: 0 }
    assert.equal(retryMs(backOff, 600_000), 900_000)
    assert.equal(retryMs(backOff, 600_001), 600_001)
    assert.deepEqual(nextBackOff(backOff, 600_001, 600_001), { delayMs: 10_000, updatedMs: 600_001 })
  })

  it("is reported with upstream's message", () => {
    const message = crashLoopMessage({ delayMs: 80_000, updatedMs: 0 }, 'c', 'p_default(u)')
    assert.equal(message, 'back-off 1m20s restarting failed container=c pod=p_default(u)')
  })
})
