import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'

import { Nodes } from '#apis/core/v1.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'

import { PodInfo } from '../cluster/pod-info.ts'
import { UNMETERED } from '../decision/meters.ts'
import type { ClusterEventWithHint, PluginRefusal } from '../framework/framework.ts'
import { nodeEvent, podEvent } from './cluster-events.ts'
import { type AttemptFailure, type QueuedPod, type QueueOptions, SchedulingQueue } from './queue.ts'

let clock: VirtualClock
let queue: SchedulingQueue
/** Names of gated pods. */
let gated: Set<string>
let eventsToRegister: Record<string, readonly ClusterEventWithHint[]>

const podOf = (name: string, priority = 0, labels = {}): PodInfo =>
  new PodInfo({
    metadata: { namespace: 'ns', name, uid: name, labels },
    spec: { priority, containers: [] },
    status: {},
  })

beforeEach(() => {
  clock = createVirtualClock(0)
  gated = new Set()
  eventsToRegister = {
    Fit: [{ resource: 'AssignedPod', actions: ['delete'] }],
    Taints: [{ resource: Nodes, actions: ['taints'], queueingHint: ({ metadata }) => metadata.name !== 'hopeless' }],
    Gate: [{ resource: 'AssignedPod', actions: ['delete'], queueingHint: () => false }],
  }
  queue = queueWith({})
})

function queueWith(other: Partial<QueueOptions>): SchedulingQueue {
  const gate: PluginRefusal = { code: 'unresolvable', reasons: [], plugin: 'Gate' }
  return new SchedulingQueue({
    clock,
    initialBackoffMs: 1000,
    maxBackoffMs: 10_000,
    maxUnschedulableMs: 300_000,
    compare: (a, b) => b.pod.priority - a.pod.priority || a.queuedMs - b.queuedMs,
    preEnqueue: ({ uid }) => (gated.has(uid) ? gate : undefined),
    registeredEvents: (_, plugin) => eventsToRegister[plugin],
    ready: () => undefined,
    meter: UNMETERED,
    ...other,
  })
}

const refusedBy = (...plugins: readonly string[]): AttemptFailure => ({
  rejectors: new Set(plugins),
  pendings: new Set(),
  isError: false,
})
const ERROR: AttemptFailure = { rejectors: new Set(), pendings: new Set(), isError: true }

function pop(): QueuedPod {
  const popped = queue.pop()
  assert.ok(popped)
  return popped
}

/** Pops a pod and requeues it. */
function refuse(setback: AttemptFailure): void {
  queue.requeue(pop(), setback)
}

const gone = podEvent('AssignedPod', undefined, podOf('gone').pod)
assert.ok(gone)
const tellGone = (): void => queue.handleEvent(gone)

describe('SchedulingQueue', () => {
  it('pops pods by priority, then by age', async () => {
    queue.add(podOf('a'))
    await clock.advance(10)
    queue.add(podOf('b', 5))
    queue.add(podOf('c', 5))
    assert.deepEqual(
      [pop(), pop(), pop()].map(({ pod }) => pod.uid),
      ['b', 'c', 'a'],
    )
    assert.equal(queue.pop(), undefined)
  })

  it('keeps a rejected pod in the queue until an event may make it schedulable', async () => {
    queue.add(podOf('a'))
    refuse(refusedBy('Taints'))
    tellGone()
    assert.deepEqual(queue.sizes, { active: 0, backoff: 0, unschedulable: 1, gated: 0 })
    const node = { metadata: { name: 'n' }, spec: {}, status: {} } as never
    const tainted = { metadata: { name: 'n' }, spec: { unschedulable: true }, status: {} } as never
    const event = nodeEvent(Nodes, node, tainted)
    assert.ok(event)
    queue.handleEvent(event)
    assert.equal(queue.sizes.backoff, 1)
    assert.equal(pop().pod.uid, 'a', 'early, because the queue has no other pod')
  })

  it('waits for the full backoff if the gate is off', async () => {
    queue = queueWith({ popsEarly: false })
    queue.add(podOf('a'))
    refuse(refusedBy('Fit'))
    tellGone()
    assert.equal(queue.sizes.backoff, 1)
    assert.equal(queue.pop(), undefined)
    await clock.advance(1000)
    assert.equal(pop().pod.uid, 'a')
  })

  it('calls the queueing hint of the plugin that rejected the pod', () => {
    queue.add(podOf('hopeless'))
    refuse(refusedBy('Taints'))
    const event = nodeEvent(
      Nodes,
      { spec: { unschedulable: true }, metadata: {}, status: {} } as never,
      { spec: {}, metadata: {}, status: {} } as never,
    )
    assert.ok(event)
    queue.handleEvent(event)
    assert.equal(queue.sizes.unschedulable, 1)
  })

  it('considers events that occur during the scheduling attempt', () => {
    queue.add(podOf('a'))
    const popped = pop()
    tellGone()
    queue.requeue(popped, refusedBy('Fit'))
    assert.equal(queue.sizes.backoff, 1)
  })

  it('ignores events from before the scheduling attempt', () => {
    queue.add(podOf('a'))
    queue.add(podOf('b'))
    const first = pop()
    tellGone()
    const second = pop()
    queue.requeue(second, refusedBy('Fit'))
    assert.equal(queue.sizes.unschedulable, 1)
    queue.requeue(first, refusedBy('Fit'))
    assert.equal(queue.sizes.backoff, 1)
  })

  it('requeues a pod in a pending state without backoff', () => {
    queue.add(podOf('a'))
    refuse({ ...refusedBy('Fit'), pendings: new Set(['Fit']) })
    tellGone()
    assert.equal(queue.sizes.active, 1)
  })

  it('doubles the backoff of a pod up to ten seconds', async () => {
    queue.add(podOf('a'))
    const waits: number[] = []
    for (let times = 0; times < 6; times++) {
      // A pod with an error is not popped early.
      refuse(ERROR)
      const sinceMs = clock.now()
      while (queue.sizes.active === 0) await clock.advance(1000)
      waits.push(clock.now() - sinceMs)
    }
    assert.deepEqual(waits, [1000, 2000, 4000, 8000, 10_000, 10_000])
  })

  it('flushes unschedulable pods after five minutes', async () => {
    queue.add(podOf('a'))
    refuse(refusedBy('Taints'))
    await clock.advance(5 * 60_000)
    assert.equal(queue.sizes.unschedulable, 1)
    await clock.advance(30_000)
    assert.equal(pop().pod.uid, 'a')
  })

  it('activates pods on request of a plugin', () => {
    queue.add(podOf('a'))
    refuse(refusedBy('Taints'))
    queue.activate(['a', 'unknown'])
    assert.equal(queue.sizes.active, 1)
  })

  it('neither pops nor flushes pods with scheduling gates', async () => {
    gated.add('a')
    queue.add(podOf('a'))
    await clock.advance(10 * 60_000)
    assert.deepEqual(queue.sizes, { active: 0, backoff: 0, unschedulable: 0, gated: 1 })
  })

  it('calls the queueing hints of the plugins that rejected a gated pod earlier', async () => {
    queue.add(podOf('a'))
    const popped = pop()
    gated.add('a')
    queue.requeue(popped, refusedBy('Fit'))
    tellGone()
    assert.equal(queue.sizes.gated, 1)
    gated.delete('a')
    tellGone()
    assert.equal(pop().pod.uid, 'a')
  })

  it('returns the newest version of an updated pod', () => {
    queue.add(podOf('a'))
    queue.update(podOf('a', 7))
    assert.equal(pop().pod.priority, 7)
  })

  it('requeues a pod when the pod itself is updated', () => {
    eventsToRegister = { Own: [{ resource: 'TargetPod', actions: ['labels'] }] }
    queue.add(podOf('a'))
    refuse(refusedBy('Own'))
    queue.update(podOf('a'))
    assert.equal(queue.sizes.unschedulable, 1)
    queue.update(podOf('a', 0, { x: 'y' }))
    assert.equal(queue.sizes.unschedulable, 0)
  })

  it('requeues a pod that was updated during its scheduling attempt, with the update', () => {
    eventsToRegister = { Own: [{ resource: 'TargetPod', actions: ['labels'] }] }
    queue.add(podOf('a'))
    const popped = pop()
    queue.update(podOf('a', 3, { x: 'y' }))
    queue.requeue(popped, refusedBy('Own'), podOf('a', 3, { x: 'y' }))
    assert.equal(queue.sizes.backoff, 1)
    const again = pop()
    assert.equal(again.pod.priority, 3)
    queue.requeue(again, refusedBy('Own'), podOf('a', 4, { x: 'y' }))
    assert.equal(queue.sizes.unschedulable, 1, 'that was no change that the plugin waits for')
  })

  it('forgets deleted pods, even during their scheduling attempt', () => {
    queue.add(podOf('a'))
    const popped = pop()
    queue.delete('a')
    assert.equal(queue.has('a'), false)
    queue.done(popped.pod.uid)
    assert.deepEqual(queue.sizes, { active: 0, backoff: 0, unschedulable: 0, gated: 0 })
  })
})
