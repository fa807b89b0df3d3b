/** Tests that the reasons of objects that are not ready are found, each from what the cluster reports. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ContainerStatus, Event, Node, Pod } from '#apis/core/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { whyObject, type ObjectEvidence } from './why-object.ts'
import { schedulerReasons, whyPod } from './why-pod.ts'

const NO_EVENTS: ObjectEvidence = { events: [] }

function pod({ metadata = {}, spec = {}, status = {} }: { metadata?: object; spec?: object; status?: object }): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web-1', namespace: 'shop', uid: 'u1', ...metadata },
    spec: { nodeName: 'node-0', containers: [{ name: 'app' }], ...spec },
    status: { phase: 'Pending', ...status },
  } as Pod
}

function container(state: object, more: object = {}): ContainerStatus {
  return { name: 'app', image: 'shop:1', imageID: '', ready: false, restartCount: 4, state, ...more } as ContainerStatus
}

function event(reason: string, message: string, at = '2026-01-01T00:00:00Z'): Event {
  return { metadata: {}, involvedObject: { uid: 'u1' }, type: 'Warning', reason, message, lastTimestamp: at } as Event
}

const waiting = (reason: string, message = ''): object => ({ waiting: { reason, message } })
const withContainer = (status: ContainerStatus): Pod => pod({ status: { containerStatuses: [status] } })
const lost = {
  kind: 'Node',
  metadata: { name: 'node-0' },
  status: { conditions: [{ type: 'Ready', status: 'Unknown', message: 'Kubelet stopped posting node status.' }] },
} as Node

/** The pod, its evidence, and its chain. */
const PODS: readonly (readonly [name: string, pod: Pod, evidence: ObjectEvidence, pattern: RegExp])[] = [
  [
    'unschedulable',
    pod({
      spec: { nodeName: '' },
      status: {
        conditions: [
          {
            type: 'PodScheduled',
            status: 'False',
            message: '0/3 nodes are available: 3 Insufficient cpu. preemption: none.',
          },
        ],
      },
    }),
    NO_EVENTS,
    /Pending \| No node fits: 0\/3 nodes .* \| 3 nodes: Insufficient cpu/,
  ],
  [
    'unbound claim',
    pod({
      spec: { nodeName: '', volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'disk' } }] },
      status: {
        conditions: [
          {
            type: 'PodScheduled',
            status: 'False',
            message: '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. x',
          },
        ],
      },
    }),
    NO_EVENTS,
    /Look at PersistentVolumeClaim disk/,
  ],
  [
    'image that cannot be pulled',
    withContainer(container(waiting('ImagePullBackOff', 'Back-off pulling image "shop:1"'))),
    { events: [event('Failed', 'Failed to pull image "shop:1": not found')] },
    /Image shop:1 of container app cannot be pulled: Failed to pull image "shop:1": not found/,
  ],
  [
    'crash loop',
    withContainer(
      container(waiting('CrashLoopBackOff', 'back-off 40s'), {
        lastState: { terminated: { exitCode: 2, reason: 'Error', message: 'no such table' } },
      }),
    ),
    NO_EVENTS,
    /CrashLoopBackOff \| Container app ended 4 times.*back-off 40s \| Its last run ended: Error, exit code 2: no such table/,
  ],
  [
    'out of memory',
    withContainer(
      container(waiting('CrashLoopBackOff'), { lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }),
    ),
    NO_EVENTS,
    /more memory than its limit/,
  ],
  [
    'failing readiness probe',
    pod({ status: { phase: 'Running', containerStatuses: [container({ running: {} }, { started: true })] } }),
    { events: [event('Unhealthy', 'Readiness probe failed: HTTP probe failed with statuscode: 503')] },
    /runs but is not ready \| Container app runs, but its readiness probe fails: Readiness probe failed: HTTP/,
  ],
  [
    'missing ConfigMap of a volume',
    withContainer(container(waiting('ContainerCreating'))),
    { events: [event('FailedMount', 'MountVolume.SetUp failed for volume "c" : configmap "settings" not found')] },
    /A volume cannot be mounted: .*"settings" not found -> ConfigMap shop\/settings/,
  ],
  [
    'missing Secret of a variable',
    withContainer(container(waiting('CreateContainerConfigError', 'secret "shop/pass" not found'))),
    NO_EVENTS,
    /cannot be created: secret "shop\/pass" not found -> Secret shop\/pass/,
  ],
  [
    'failing init container',
    pod({
      spec: { initContainers: [{ name: 'migrate' }] },
      status: {
        initContainerStatuses: [
          {
            ...container(waiting('CrashLoopBackOff'), { lastState: { terminated: { exitCode: 1, reason: 'Error' } } }),
            name: 'migrate',
          },
        ],
        containerStatuses: [container(waiting('PodInitializing'))],
      },
    }),
    NO_EVENTS,
    /Init:CrashLoopBackOff \| Init container migrate must complete first \| Container migrate ended 4 times/,
  ],
  [
    'node that is not ready',
    pod({ status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }),
    { events: [], node: lost },
    /Its node node-0 is not ready: Kubelet stopped posting node status. -> Node node-0/,
  ],
  [
    'eviction',
    pod({ status: { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' } }),
    NO_EVENTS,
    /The kubelet evicted the pod: The node was low on resource: memory\./,
  ],
  [
    'finalizers',
    pod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/stop'] } }),
    NO_EVENTS,
    /Terminating \| Its deletion began.* \| It stays until .*: example.com\/stop/,
  ],
  [
    'scheduling gate',
    pod({ spec: { nodeName: '', schedulingGates: [{ name: 'quota' }] } }),
    NO_EVENTS,
    /gates are removed: quota/,
  ],
]

function textOf(causes: ReturnType<typeof whyObject>): string {
  return causes
    .map(({ text, detail = '', to }) => {
      const where = to?.namespace === undefined ? '' : `${to.namespace}/`
      return `${text}${detail === '' ? '' : `: ${detail}`}${to === undefined ? '' : ` -> ${to.kind} ${where}${to.name}`}`
    })
    .join(' | ')
}

describe('whyPod()', () => {
  for (const [name, subject, evidence, pattern] of PODS) {
    it(`explains: ${name}`, () => assert.match(textOf(whyPod(subject, evidence)), pattern))
  }

  it('finds no causes for pods that are ready or have completed', () => {
    const ready = pod({ status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } })
    assert.deepEqual(whyPod(ready, NO_EVENTS), [])
    assert.deepEqual(whyPod(pod({ status: { phase: 'Succeeded' } }), NO_EVENTS), [])
  })

  it('splits the message of the scheduler', () => {
    const message = '0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient memory. preemption: x.'
    assert.deepEqual(
      schedulerReasons(message).map(({ text }) => text),
      ['1 node: had untolerated taint(s)', '3 nodes: Insufficient memory'],
    )
  })
})

describe('whyObject()', () => {
  const deployment = (status: object): KubeObject =>
    ({ kind: 'Deployment', metadata: { name: 'web', namespace: 'shop' }, spec: { replicas: 2 }, status }) as KubeObject

  it('names an exceeded quota from the condition or from an event', () => {
    const message = 'pods "web-1" is forbidden: exceeded quota: small'
    const byCondition = deployment({ conditions: [{ type: 'ReplicaFailure', status: 'True', message }] })
    assert.match(textOf(whyObject(byCondition, NO_EVENTS)), /A quota .* forbids more pods: .*exceeded quota: small/)
    const byEvent = whyObject(deployment({}), { events: [event('FailedCreate', message)] })
    assert.match(textOf(byEvent), /exceeded quota: small/)
  })

  it('shows the chain of the worst pod of a workload', () => {
    const pods = [pod({}), PODS[3]![1]]
    const text = textOf(whyObject(deployment({ replicas: 2 }), { events: [], pods }))
    assert.match(text, /2 of 2 pods are not ready; pod web-1: -> Pod shop\/web-1 \| The pod is CrashLoopBackOff/)
  })

  it('explains why a claim waits', () => {
    const claim = { kind: 'PersistentVolumeClaim', metadata: {}, spec: {}, status: { phase: 'Pending' } } as KubeObject
    const events = [event('WaitForFirstConsumer', 'waiting for first consumer')]
    assert.match(textOf(whyObject(claim, { events })), /as soon as a pod uses it: waiting for first consumer/)
  })

  it('lists conditions that are problems', () => {
    const node = {
      kind: 'Node',
      metadata: {},
      status: { conditions: [{ type: 'DiskPressure', status: 'True', reason: 'Full', message: 'disk full' }] },
    } as unknown as KubeObject
    assert.equal(textOf(whyObject(node, NO_EVENTS)), 'Condition DiskPressure is True (Full): disk full')
  })
})
