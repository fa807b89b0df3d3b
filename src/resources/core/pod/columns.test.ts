import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ContainerState, ContainerStatus, PodCondition } from '#apis/core/v1.ts'

import { podColumns, podRowConditions } from './columns.ts'
import { NOW, podOf, type PodPatch, web } from './pod.suite.ts'

const running: ContainerState = { running: { startedAt: null } }
const waiting = (reason: string): ContainerState => ({ waiting: { reason } })
const ended = (exitCode: number, reason = '', signal = 0): ContainerState => ({
  terminated: { exitCode, reason, signal, startedAt: null, finishedAt: '2024-05-06T07:03:09Z' },
})

function status(name: string, state: ContainerState, more: Partial<ContainerStatus> = {}): ContainerStatus {
  return {
    name,
    state,
    lastState: {},
    ready: state.running !== undefined,
    restartCount: 0,
    image: '',
    imageID: '',
    ...more,
  }
}

const condition = (type: string, value = 'True', reason = ''): PodCondition => ({
  type,
  status: value,
  lastProbeTime: null,
  lastTransitionTime: null,
  ...(reason !== '' && { reason }),
})

const restarted = { restartCount: 3, lastState: ended(1) }
const one = { containers: [web()] }
const two = { containers: [web(), web({ name: 'b' })] }
const init = { containers: [web()], initContainers: [web({ name: 'i' }), web({ name: 'j' })] }
const sidecar = { containers: [web()], initContainers: [web({ name: 's', restartPolicy: 'Always' })] }
const going = { deletionTimestamp: NOW }

/** The pod, and its READY, STATUS and RESTARTS cells. */
const rows: readonly [PodPatch, string][] = [
  [{ spec: one, status: { phase: 'Pending' } }, '0/1 Pending 0'],
  [{ spec: one, status: { phase: 'Failed', reason: 'Evicted' } }, '0/1 Evicted 0'],
  [
    { spec: one, status: { phase: 'Pending', conditions: [condition('PodScheduled', 'False', 'SchedulingGated')] } },
    '0/1 SchedulingGated 0',
  ],
  [{ spec: one, status: { phase: 'Running', containerStatuses: [status('web', running)] } }, '1/1 Running 0'],
  [
    {
      spec: one,
      status: { phase: 'Running', containerStatuses: [status('web', waiting('CrashLoopBackOff'), restarted)] },
    },
    '0/1 CrashLoopBackOff 3 (5m ago)',
  ],
  [
    { spec: one, status: { phase: 'Running', containerStatuses: [status('web', running, { restartCount: 2 })] } },
    '1/1 Running 2',
  ],
  [
    { spec: one, status: { phase: 'Succeeded', containerStatuses: [status('web', ended(0, 'Completed'))] } },
    '0/1 Completed 0',
  ],
  [{ spec: one, status: { phase: 'Failed', containerStatuses: [status('web', ended(137, '', 9))] } }, '0/1 Signal:9 0'],
  [{ spec: one, status: { phase: 'Failed', containerStatuses: [status('web', ended(2))] } }, '0/1 ExitCode:2 0'],
  [
    {
      spec: two,
      status: { phase: 'Running', containerStatuses: [status('web', ended(0, 'Completed')), status('b', running)] },
    },
    '1/2 NotReady 0',
  ],
  [
    {
      spec: two,
      status: {
        phase: 'Running',
        conditions: [condition('Ready')],
        containerStatuses: [status('web', ended(0, 'Completed')), status('b', running)],
      },
    },
    '1/2 Running 0',
  ],
  [
    {
      spec: two,
      status: {
        phase: 'Running',
        containerStatuses: [status('web', ended(0, 'Completed')), status('b', ended(1, 'Error'))],
      },
    },
    '0/2 Error 0',
  ],
  [
    { spec: init, status: { phase: 'Pending', initContainerStatuses: [status('i', waiting('PodInitializing'))] } },
    '0/1 Init:0/2 0',
  ],
  [
    { spec: init, status: { phase: 'Pending', initContainerStatuses: [status('i', ended(0)), status('j', running)] } },
    '0/1 Init:1/2 0',
  ],
  [
    { spec: init, status: { phase: 'Pending', initContainerStatuses: [status('i', waiting('ImagePullBackOff'))] } },
    '0/1 Init:ImagePullBackOff 0',
  ],
  [
    { spec: init, status: { phase: 'Pending', initContainerStatuses: [status('i', ended(1, 'Error'), restarted)] } },
    '0/1 Init:Error 3 (5m ago)',
  ],
  [
    { spec: init, status: { phase: 'Pending', initContainerStatuses: [status('i', ended(3))] } },
    '0/1 Init:ExitCode:3 0',
  ],
  [
    {
      spec: init,
      status: {
        phase: 'Running',
        initContainerStatuses: [status('i', ended(0), restarted), status('j', ended(0))],
        containerStatuses: [status('web', running)],
      },
    },
    '1/1 Running 0',
  ],
  [
    {
      spec: sidecar,
      status: {
        phase: 'Running',
        initContainerStatuses: [status('s', running, { started: true, ...restarted })],
        containerStatuses: [status('web', running)],
      },
    },
    '2/2 Running 3 (5m ago)',
  ],
  [
    { spec: sidecar, status: { phase: 'Pending', initContainerStatuses: [status('s', running, { started: false })] } },
    '0/2 Init:0/1 0',
  ],
  [
    { spec: one, metadata: going, status: { phase: 'Running', containerStatuses: [status('web', running)] } },
    '1/1 Terminating 0',
  ],
  [{ spec: one, metadata: going, status: { phase: 'Running', reason: 'NodeLost' } }, '0/1 Unknown 0'],
  [{ spec: one, metadata: going, status: { phase: 'Succeeded' } }, '0/1 Succeeded 0'],
]

describe('columns of kubectl get pods', () => {
  const cells = (patch: PodPatch): Record<string, unknown> =>
    Object.fromEntries(podColumns.map((column) => [column.name, column.value(podOf(patch), Date.parse(NOW))]))

  for (const [patch, wanted] of rows) {
    it(`show "${wanted}" as Ready, Status and Restarts`, () => {
      const { Ready, Status, Restarts } = cells(patch)
      assert.equal([Ready, Status, Restarts].join(' '), wanted)
    })
  }

  it('include IP, node and gates in wide output', () => {
    const gates = { ...one, nodeName: 'n', readinessGates: [{ conditionType: 'a' }, { conditionType: 'b' }] }
    const full = cells({
      metadata: { creationTimestamp: '2024-05-06T07:07:09Z' },
      spec: gates,
      status: { podIPs: [{ ip: '1.2.3.4' }], nominatedNodeName: 'm', conditions: [condition('a')] },
    })
    assert.deepEqual(full, {
      Name: 'p',
      Ready: '0/1',
      Status: '',
      Restarts: '0',
      Age: '60s',
      IP: '1.2.3.4',
      Node: 'n',
      'Nominated Node': 'm',
      'Readiness Gates': '1/2',
    })
    const { IP, Node, 'Nominated Node': nominated, 'Readiness Gates': none } = cells({ spec: one })
    assert.deepEqual([IP, Node, nominated, none], ['<none>', '<none>', '<none>', '<none>'])
    assert.deepEqual(
      podColumns.filter(({ wide }) => wide).map(({ name }) => name),
      ['IP', 'Node', 'Nominated Node', 'Readiness Gates'],
    )
  })

  it('mark terminated pods so that kubectl can hide them', () => {
    const over = { type: 'Completed', status: 'True' }
    assert.deepEqual(podRowConditions(podOf({ status: { phase: 'Succeeded' } })), [
      { ...over, reason: 'Succeeded', message: 'The pod has completed successfully.' },
    ])
    assert.deepEqual(podRowConditions(podOf({ status: { phase: 'Failed' } })), [
      { ...over, reason: 'Failed', message: 'The pod failed.' },
    ])
    assert.deepEqual(podRowConditions(podOf({ status: { phase: 'Running' } })), [])
  })
})
