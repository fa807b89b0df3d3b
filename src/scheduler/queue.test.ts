import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'

import { Nodes } from '#apis/core/v1.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'

import type { PluginRefusal, Wake } from './framework.ts'
import { UNMETERED } from './meters.ts'
import { newsOfNode, newsOfPod } from './news.ts'
import { PodInfo } from './pod-info.ts'
import { type QueuedPod, type QueueOptions, SchedulingQueue, type Setback } from './queue.ts'

let clock: VirtualClock
let queue: SchedulingQueue
/** Who may not be thought of, by name. */
let gated: Set<string>
let wakes: Record<string, readonly Wake[]>

const podOf = (name: string, priority = 0, labels = {}): PodInfo =>
  new PodInfo({
    metadata: { namespace: 'ns', name, uid: name, labels },
    spec: { priority, containers: [] },
    status: {},
  })

beforeEach(() => {
  clock = createVirtualClock(0)
  gated = new Set()
  wakes = {
    Fit: [{ on: 'AssignedPod', actions: ['delete'] }],
    Taints: [{ on: Nodes, actions: ['taints'], helps: ({ metadata }) => metadata.name !== 'hopeless' }],
    Gate: [{ on: 'AssignedPod', actions: ['delete'], helps: () => false }],
  }
  queue = queueWith({})
})

function queueWith(other: Partial<QueueOptions>): SchedulingQueue {
  const gate: PluginRefusal = { code: 'unresolvable', reasons: [], plugin: 'Gate' }
  return new SchedulingQueue({
    clock,
    initialBackoffMs: 1000,
    maxBackoffMs: 10_000,
    parkedAtMostMs: 300_000,
    compare: (a, b) => b.pod.priority - a.pod.priority || a.queuedMs - b.queuedMs,
    preEnqueue: ({ uid }) => (gated.has(uid) ? gate : undefined),
    wakesOf: (_, plugin) => wakes[plugin],
    ready: () => undefined,
    meter: UNMETERED,
    ...other,
  })
}

const refusedBy = (...plugins: readonly string[]): Setback => ({
  rejectors: new Set(plugins),
  pendings: new Set(),
  isError: false,
})
const ERROR: Setback = { rejectors: new Set(), pendings: new Set(), isError: true }

function pop(): QueuedPod {
  const popped = queue.pop()
  assert.ok(popped)
  return popped
}

/** Popped and put back. */
function refuse(setback: Setback): void {
  queue.putBack(pop(), setback)
}

const gone = newsOfPod('AssignedPod', undefined, podOf('gone').pod)
assert.ok(gone)
const tellGone = (): void => queue.tell(gone)

describe('the queue', () => {
  it('gives the most important first, and of equals who came first', async () => {
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

  it('keeps who was refused until something happens that helps', async () => {
    queue.add(podOf('a'))
    refuse(refusedBy('Taints'))
    tellGone()
    assert.deepEqual(queue.sizes, { active: 0, backoff: 0, unschedulable: 1, gated: 0 })
    const node = { metadata: { name: 'n' }, spec: {}, status: {} } as never
    const tainted = { metadata: { name: 'n' }, spec: { unschedulable: true }, status: {} } as never
    const news = newsOfNode(Nodes, node, tainted)
    assert.ok(news)
    queue.tell(news)
    assert.equal(queue.sizes.backoff, 1)
    assert.equal(pop().pod.uid, 'a', 'early: nobody else wants to')
  })

  it('lets nobody out of back-off early where that is off', async () => {
    queue = queueWith({ popsEarly: false })
    queue.add(podOf('a'))
    refuse(refusedBy('Fit'))
    tellGone()
    assert.equal(queue.sizes.backoff, 1)
    assert.equal(queue.pop(), undefined)
    await clock.advance(1000)
    assert.equal(pop().pod.uid, 'a')
  })

  it('asks the plugin whether it helps this very pod', () => {
    queue.add(podOf('hopeless'))
    refuse(refusedBy('Taints'))
    const news = newsOfNode(
      Nodes,
      { spec: { unschedulable: true }, metadata: {}, status: {} } as never,
      { spec: {}, metadata: {}, status: {} } as never,
    )
    assert.ok(news)
    queue.tell(news)
    assert.equal(queue.sizes.unschedulable, 1)
  })

  it('hears of what happened while the pod was looked at', () => {
    queue.add(podOf('a'))
    const popped = pop()
    tellGone()
    queue.putBack(popped, refusedBy('Fit'))
    assert.equal(queue.sizes.backoff, 1)
  })

  it('forgets what happened before that', () => {
    queue.add(podOf('a'))
    queue.add(podOf('b'))
    const first = pop()
    tellGone()
    const second = pop()
    queue.putBack(second, refusedBy('Fit'))
    assert.equal(queue.sizes.unschedulable, 1)
    queue.putBack(first, refusedBy('Fit'))
    assert.equal(queue.sizes.backoff, 1)
  })

  it('lets who waits for something under way go first, without delay', () => {
    queue.add(podOf('a'))
    refuse({ ...refusedBy('Fit'), pendings: new Set(['Fit']) })
    tellGone()
    assert.equal(queue.sizes.active, 1)
  })

  it('makes who was refused again and again wait longer, ten seconds at most', async () => {
    queue.add(podOf('a'))
    const waits: number[] = []
    for (let times = 0; times < 6; times++) {
      // Whom something broke for is not taken early.
      refuse(ERROR)
      const sinceMs = clock.now()
      while (queue.sizes.active === 0) await clock.advance(1000)
      waits.push(clock.now() - sinceMs)
    }
    assert.deepEqual(waits, [1000, 2000, 4000, 8000, 10_000, 10_000])
  })

  it('lets everybody try again after five minutes', async () => {
    queue.add(podOf('a'))
    refuse(refusedBy('Taints'))
    await clock.advance(5 * 60_000)
    assert.equal(queue.sizes.unschedulable, 1)
    await clock.advance(30_000)
    assert.equal(pop().pod.uid, 'a')
  })

  it('lets those try at once who are called', () => {
    queue.add(podOf('a'))
    refuse(refusedBy('Taints'))
    queue.activate(['a', 'unknown'])
    assert.equal(queue.sizes.active, 1)
  })

  it('does not give who is gated, nor flush them', async () => {
    gated.add('a')
    queue.add(podOf('a'))
    await clock.advance(10 * 60_000)
    assert.deepEqual(queue.sizes, { active: 0, backoff: 0, unschedulable: 0, gated: 1 })
  })

  it('lets those that refused a pod before it was gated say what helps', async () => {
    queue.add(podOf('a'))
    const popped = pop()
    gated.add('a')
    queue.putBack(popped, refusedBy('Fit'))
    tellGone()
    assert.equal(queue.sizes.gated, 1)
    gated.delete('a')
    tellGone()
    assert.equal(pop().pod.uid, 'a')
  })

  it('takes the pod as it is now', () => {
    queue.add(podOf('a'))
    queue.update(podOf('a', 7))
    assert.equal(pop().pod.priority, 7)
  })

  it('wakes a pod by its own change', () => {
    wakes = { Own: [{ on: 'TargetPod', actions: ['labels'] }] }
    queue.add(podOf('a'))
    refuse(refusedBy('Own'))
    queue.update(podOf('a'))
    assert.equal(queue.sizes.unschedulable, 1)
    queue.update(podOf('a', 0, { x: 'y' }))
    assert.equal(queue.sizes.unschedulable, 0)
  })

  it('wakes a pod by its own change while it was looked at, and keeps it as it is now', () => {
    wakes = { Own: [{ on: 'TargetPod', actions: ['labels'] }] }
    queue.add(podOf('a'))
    const popped = pop()
    queue.update(podOf('a', 3, { x: 'y' }))
    queue.putBack(popped, refusedBy('Own'), podOf('a', 3, { x: 'y' }))
    assert.equal(queue.sizes.backoff, 1)
    const again = pop()
    assert.equal(again.pod.priority, 3)
    queue.putBack(again, refusedBy('Own'), podOf('a', 4, { x: 'y' }))
    assert.equal(queue.sizes.unschedulable, 1, 'that was no change that the plugin waits for')
  })

  it('forgets who is deleted, even in flight', () => {
    queue.add(podOf('a'))
    const popped = pop()
    queue.delete('a')
    assert.equal(queue.has('a'), false)
    queue.done(popped.pod.uid)
    assert.deepEqual(queue.sizes, { active: 0, backoff: 0, unschedulable: 0, gated: 0 })
  })
})
