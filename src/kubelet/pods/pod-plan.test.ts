import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod, PodSpec } from '#apis/core/v1.ts'

import type { ContainerRecord, Run } from '../pod/container-runs.ts'
import { stopping } from '../pod/events.ts'
import { allocationOf } from '../pod/pod-allocation.ts'
import { containerHash } from './container-config.ts'
import { type Action, planPod, type PodObservation } from './pod-plan.ts'
import { createPodState, type PodState, type Sandbox, type Stage } from './pod-state.ts'
import { containerOf, podOf } from './worker.fixture.ts'

const NOW_MS = 1_000_000

const SANDBOX: Sandbox = { id: 's1', config: {}, ips: ['10.0.0.9'] }

const running: Run = { id: 'containerd://c1', startedMs: 0 }

const ended = (exitCode: number, finishedMs = NOW_MS - 20_000): Run => ({
  ...running,
  end: { finishedMs, exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' },
})

/** One line for each action, with the containers it is about. */
function lineOf(action: Action): string {
  const { type } = action
  if (type === 'enter') return `→ ${action.stage}`
  if (type === 'wait') {
    const seconds = action.untilMs === Infinity ? 'an event' : `${(action.untilMs - NOW_MS) / 1000} s`
    return `wait for ${seconds}${action.isAgain === true ? ', again' : ''}`
  }
  if (type === 'stop') {
    const stops = action.stops.map(({ record, graceSeconds }) => `${record.spec.name} in ${graceSeconds ?? 'its'} s`)
    return `stop ${stops.join(' and ')}`
  }
  if (type === 'mount-volumes') return action.isOptional === true ? 'mount-volumes, optional' : type
  if (type === 'publish') return action.hasSandbox === false ? 'publish without sandbox' : type
  if (type === 'record-event') return `event ${action.event.reason}`
  if (type === 'fail') return `fail ${action.verdict.reason}`
  if (type === 'leave-sandbox') return `leave-sandbox ${action.id}${action.isReplaced ? ', replaced' : ''}`
  return 'record' in action ? `${type} ${action.record.spec.name}` : type
}

interface Case {
  readonly name: string
  readonly stage: Stage
  readonly spec?: Partial<PodSpec>
  readonly metadata?: Partial<Pod['metadata']>
  /** Runs of containers, by name. */
  readonly runs?: Readonly<Record<string, Partial<ContainerRecord>>>
  readonly state?: Partial<PodState>
  readonly change?: (state: PodState) => void
  readonly observed?: Partial<PodObservation>
  readonly expected: readonly string[]
}

function linesOf({ stage, spec, metadata, runs = {}, state: given, change, observed }: Case): string[] {
  const pod = podOf(spec, metadata)
  const state: PodState = {
    ...createPodState(pod, allocationOf(pod.spec), NOW_MS),
    isAdmitted: true,
    sandbox: SANDBOX,
    stage,
    ...given,
  }
  for (const record of state.records) Object.assign(record, runs[record.spec.name])
  change?.(state)
  const sandbox = { id: 's1', isReady: true }
  return planPod(state, { sandbox, phase: 'Running', pullRetryMs: () => undefined, ...observed }, NOW_MS).map(lineOf)
}

const DELETED: Partial<Pod['metadata']> = { deletionTimestamp: '2026-11-18T00:00:00Z', deletionGracePeriodSeconds: 20 }

const [main, side] = [containerOf('main'), containerOf('side', { restartPolicy: 'Always' })]
const WITH_SIDECARS = { containers: [main], initContainers: [side, containerOf('last', { restartPolicy: 'Always' })] }
const RESTARTS_ALL = containerOf('c', {
  restartPolicy: 'Never',
  restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }],
})

const CASES: readonly Case[] = [
  { name: 'admits a new pod', stage: 'admission', state: { isAdmitted: false }, expected: ['admit', '→ decision'] },
  { name: 'admits a pod once', stage: 'admission', expected: ['→ decision'] },

  {
    name: 'fails a pod whose deadline has passed',
    stage: 'decision',
    spec: { activeDeadlineSeconds: 10 },
    state: { startedMs: NOW_MS - 10_000 },
    expected: ['fail DeadlineExceeded', '→ decision'],
  },
  {
    name: 'keeps the admission result of a pod that is already ending',
    stage: 'decision',
    spec: { activeDeadlineSeconds: 10 },
    metadata: DELETED,
    state: { startedMs: NOW_MS - 10_000 },
    expected: ['→ restart-all'],
  },
  {
    name: 'only publishes the status of a rejected pod',
    stage: 'decision',
    state: { isRejected: true, verdict: { reason: 'OutOfcpu', message: '' } },
    expected: ['publish', 'wait for an event'],
  },
  {
    name: 'removes a rejected pod that is deleted',
    stage: 'decision',
    metadata: DELETED,
    state: { isRejected: true, verdict: { reason: 'OutOfcpu', message: '' } },
    expected: ['→ restart-all'],
  },
  {
    name: 'allocates a pod resize',
    stage: 'decision',
    change: (state) =>
      void (state.resize.allocation = { containers: { c: { requests: { cpu: '1' } } }, pod: undefined }),
    expected: ['allocate-resize', '→ restart-all'],
  },

  {
    name: 'restarts all containers, and the one with the RestartAllContainers rule last',
    stage: 'restart-all',
    spec: { containers: [RESTARTS_ALL, containerOf('other')] },
    runs: { c: { run: ended(42) }, other: { run: running } },
    expected: [
      'begin-restart-all',
      'publish',
      'stop other in 0 s',
      'remove-containers other',
      'remove-containers c',
      'finish-restart-all',
      '→ course',
    ],
  },
  {
    name: 'restarts no container of a pod that is ending',
    stage: 'restart-all',
    spec: { containers: [RESTARTS_ALL] },
    metadata: DELETED,
    runs: { c: { run: ended(42) } },
    expected: ['→ course'],
  },

  {
    name: 'publishes the status of a running pod',
    stage: 'course',
    runs: { c: { run: running } },
    expected: ['publish', '→ sandbox'],
  },
  {
    name: 'publishes the status of a deleted pod before it stops containers',
    stage: 'course',
    metadata: DELETED,
    runs: { c: { run: running } },
    expected: ['begin-end', 'publish', '→ stopping'],
  },
  {
    name: 'ends a pod whose containers have ended',
    stage: 'course',
    spec: { restartPolicy: 'Never' },
    runs: { c: { run: ended(0) } },
    expected: ['begin-end', '→ stopping'],
  },
  {
    name: 'ends a pod that has succeeded',
    stage: 'course',
    observed: { phase: 'Succeeded' },
    expected: ['begin-end', '→ stopping'],
  },

  { name: 'keeps a ready sandbox', stage: 'sandbox', expected: ['→ resize'] },
  {
    name: 'replaces a lost sandbox',
    stage: 'sandbox',
    runs: { c: { run: running } },
    observed: { sandbox: { id: 's1', isReady: false } },
    expected: ['event SandboxChanged', 'stop c in its s', 'leave-sandbox s1, replaced', '→ resize'],
  },
  {
    name: 'does not replace the sandbox of a pod that never restarts',
    stage: 'sandbox',
    spec: { restartPolicy: 'Never' },
    runs: { c: { run: running } },
    observed: { sandbox: { id: 's1', isReady: false } },
    expected: ['stop c in its s', 'leave-sandbox s1', '→ resize'],
  },
  {
    name: 'stops a sandbox only once',
    stage: 'sandbox',
    state: { sandbox: undefined, leftSandbox: 's1' },
    observed: { sandbox: { id: 's1', isReady: false } },
    expected: ['→ resize'],
  },

  {
    name: 'restarts a container with another image',
    stage: 'resize',
    runs: { c: { run: running, hash: containerHash(containerOf('c', { image: 'nginx:0' })) } },
    expected: ['request-restart c', '→ kills'],
  },
  {
    name: 'resizes containers in place, or restarts those with RestartContainer',
    stage: 'resize',
    spec: {
      containers: [
        containerOf('a', { resources: { requests: { cpu: '2' } } }),
        containerOf('b', {
          resources: { requests: { cpu: '2' } },
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }],
        }),
      ],
    },
    runs: {
      a: { run: running, actual: { requests: { cpu: '1' } } },
      b: { run: running, actual: { requests: { cpu: '1' } } },
    },
    expected: ['request-restart b', 'apply-resize', '→ kills'],
  },

  { name: 'kills no container without a kill request', stage: 'kills', expected: ['→ containers'] },
  {
    name: 'kills one container after the other',
    stage: 'kills',
    spec: { containers: [containerOf('a'), containerOf('b')] },
    change: ({ records, killRequests }) => {
      for (const record of records) killRequests.set(record, { why: stopping('x'), graceSeconds: 3 })
    },
    expected: ['stop a in 3 s', 'stop b in 3 s', '→ kills'],
  },

  {
    name: 'creates the prerequisites of a container, and starts it',
    stage: 'containers',
    state: { sandbox: undefined },
    expected: [
      'mount-volumes',
      'prepare-claims',
      'create-cgroup',
      'create-sandbox',
      'publish',
      'start c',
      'watch-probes',
      '→ settled',
    ],
  },
  {
    name: 'starts containers in an existing sandbox together',
    stage: 'containers',
    spec: { containers: [containerOf('a'), containerOf('b')] },
    expected: ['mount-volumes', 'prepare-claims', 'start a', 'start b', 'watch-probes', '→ settled'],
  },
  {
    name: 'starts one init container after the other',
    stage: 'containers',
    spec: { initContainers: [containerOf('i'), containerOf('j')] },
    runs: { i: { run: ended(0) } },
    expected: ['mount-volumes', 'prepare-claims', 'start j', 'watch-probes', '→ settled'],
  },
  {
    name: 'updates volumes while containers run',
    stage: 'containers',
    runs: { c: { run: running } },
    expected: ['mount-volumes, optional', '→ settled'],
  },
  {
    name: 'stops the last sidecar when no main container is left',
    stage: 'containers',
    spec: { ...WITH_SIDECARS, restartPolicy: 'Never' },
    runs: { main: { run: ended(0) }, side: { run: running, isStarted: true }, last: { run: running, isStarted: true } },
    expected: ['stop last in its s', 'mount-volumes, optional', '→ settled'],
  },

  {
    name: 'waits for the next event while containers run',
    stage: 'settled',
    runs: { c: { run: running } },
    expected: ['publish', 'wait for an event'],
  },
  {
    name: 'waits no longer than the deadline',
    stage: 'settled',
    spec: { activeDeadlineSeconds: 90 },
    runs: { c: { run: running } },
    expected: ['publish', 'wait for 90 s'],
  },
  {
    name: 'waits for the back-off of a container',
    stage: 'settled',
    runs: {
      c: {
        run: ended(1, NOW_MS - 5000),
        restarts: { delayMs: 20_000, updatedMs: NOW_MS - 5000 },
        waiting: { reason: 'CrashLoopBackOff' },
      },
    },
    expected: ['publish', 'wait for 15 s'],
  },
  {
    name: 'syncs again when an init container has made room for others',
    stage: 'settled',
    spec: WITH_SIDECARS,
    runs: { side: { run: running, isStarted: true } },
    state: { startedCount: 1 },
    expected: ['publish', 'wait for 10 s, again'],
  },
  {
    name: 'completes a resize that is applied to all containers',
    stage: 'settled',
    runs: { c: { run: running } },
    change: ({ resize }) => void (resize.inProgress = { sinceMs: 0, observedGeneration: 2 }),
    expected: ['complete-resize', 'publish', 'wait for an event'],
  },

  {
    name: 'stops main containers together, within the rest of the grace period',
    stage: 'stopping',
    spec: { ...WITH_SIDECARS, containers: [main, containerOf('twin')] },
    metadata: DELETED,
    runs: { main: { run: running }, twin: { run: running }, side: { run: running }, last: { run: running } },
    state: { endingSinceMs: NOW_MS - 5000 },
    expected: ['stop main in 15 s and twin in 15 s', '→ stopping'],
  },
  {
    name: 'stops sidecars after main containers, in reverse order',
    stage: 'stopping',
    spec: WITH_SIDECARS,
    metadata: DELETED,
    runs: { main: { run: ended(0) }, side: { run: running }, last: { run: running } },
    state: { endingSinceMs: NOW_MS - 60_000 },
    expected: ['stop last in 0 s', '→ stopping'],
  },
  {
    name: 'limits the grace period of an evicted pod',
    stage: 'stopping',
    runs: { c: { run: running } },
    state: { verdict: { reason: 'Evicted', message: '' }, maxGraceSeconds: 1, endingSinceMs: NOW_MS },
    expected: ['stop c in 1 s', '→ stopping'],
  },
  {
    name: 'gives no grace period when the API server no longer has the pod',
    stage: 'stopping',
    runs: { c: { run: running } },
    state: { isDeleted: true, endingSinceMs: NOW_MS },
    expected: ['stop c in 0 s', '→ stopping'],
  },
  {
    name: 'cleans up when the last container has ended',
    stage: 'stopping',
    metadata: DELETED,
    runs: { c: { run: ended(0) } },
    expected: [
      'stop-sandboxes',
      'remove-cgroup',
      'end-probes',
      'publish without sandbox',
      'report-end',
      'unmount-volumes',
      'release-resources',
      'settle-status',
      '→ leaving',
    ],
  },

  { name: 'keeps a pod that has ended', stage: 'leaving', expected: ['wait for an event'] },
  {
    name: 'deletes a pod',
    stage: 'leaving',
    metadata: DELETED,
    expected: ['delete-pod', 'remove-pod', 'wait for an event'],
  },
  {
    name: 'removes a pod that the API server no longer has',
    stage: 'leaving',
    state: { isDeleted: true },
    expected: ['remove-pod', 'wait for an event'],
  },
]

describe('planPod() of a pod worker', () => {
  for (const each of CASES)
    it(`${each.name}, with the pod in the stage "${each.stage}"`, () => assert.deepEqual(linesOf(each), each.expected))
})
