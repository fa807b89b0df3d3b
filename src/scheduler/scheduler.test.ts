import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Node, Pod } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Cluster } from './cluster/cluster.ts'
import { Nominations } from './cluster/nominations.ts'
import { PodInfo } from './cluster/pod-info.ts'
import { UNMETERED } from './decision/meters.ts'
import { type Handle, type Plugin, unschedulable } from './framework/framework.ts'
import type { Profile } from './framework/profile.ts'
import { SchedulingQueue } from './queue/queue.ts'
import { Scheduler } from './scheduler.ts'

function profileOf(plugin: Plugin): Profile {
  const all = [{ name: 'It', plugin }]
  const [it] = all as [(typeof all)[0]]
  const parts = {
    preEnqueue: [],
    filter: [],
    postFilter: [],
    score: [],
    reserve: [],
    permit: [],
    preBind: [],
    postBind: [],
  }
  return {
    name: 'default-scheduler',
    plugins: all,
    queueSort: it,
    preFilter: all,
    bind: all,
    percentageOfNodesToScore: 0,
    ...parts,
  }
}

const clock = createVirtualClock()

function podOf(name: string, labels: Record<string, string> = {}): Pod {
  return { metadata: { namespace: 'd', name, uid: name, labels }, spec: { containers: [] }, status: {} }
}

interface SchedulerUnderTest {
  readonly queue: SchedulingQueue
  /** Logged errors, and status messages of pods. */
  readonly errors: string[]
  readonly notes: string[]
}

/** Starts a scheduler with one node and one plugin over stored `pods`. */
function start(plugin: Plugin, pods: Map<string, Pod>): SchedulerUnderTest {
  const cluster = new Cluster(() => ({}))
  cluster.setNode({ metadata: { name: 'n' }, spec: {}, status: {} } as Node)
  const errors: string[] = []
  const notes: string[] = []
  const handle = {
    clock,
    random: createSeededRandom(1),
    meter: UNMETERED,
    isEnabled: () => false,
    client: { patch: () => Promise.resolve() },
    log: { error: (error: unknown) => errors.push((error as Error).message) },
    of: () => ({ get: (key: string) => pods.get(key) }),
  } as unknown as Handle
  const profile = profileOf({ compare: () => 0, ...plugin })
  const queue = new SchedulingQueue({
    clock,
    initialBackoffMs: 1000,
    maxBackoffMs: 10_000,
    maxUnschedulableMs: 300_000,
    compare: () => 0,
    preEnqueue: () => undefined,
    registeredEvents: () => plugin.eventsToRegister ?? [],
    ready: () => scheduler.wake(),
    meter: UNMETERED,
  })
  const scheduler: Scheduler = new Scheduler({
    handle,
    cluster,
    queue,
    nominations: new Nominations(),
    profiles: new Map([[profile.name, profile]]),
    extenders: [],
    recorderOf: () => ({ record: (_: unknown, { note }: { note: string }) => notes.push(note) }) as never,
    signal: new AbortController().signal,
  })
  scheduler.begin()
  for (const pod of pods.values()) queue.add(new PodInfo(pod))
  return { queue, errors, notes }
}

describe('Scheduler', () => {
  it('schedules other pods if one fails with an exception, and reports the failure', async () => {
    const bound: string[] = []
    const pods = new Map(['odd', 'plain'].map((name) => [`d/${name}`, podOf(name)]))
    const { queue, errors, notes } = start(
      {
        preFilter({ uid }) {
          if (uid === 'odd') throw new Error('the pod is unknown')
          return undefined
        },
        bind: ({ uid }) => (bound.push(uid), Promise.resolve(undefined)),
      },
      pods,
    )
    await clock.advance(1)
    assert.deepEqual(bound, ['plain'])
    assert.deepEqual(errors, ['the pod is unknown'])
    assert.deepEqual(notes, ['the pod is unknown', 'Successfully assigned d/plain to n'])
    assert.equal(queue.sizes.backoff, 1)
    await clock.advance(3000)
    assert.ok(errors.length > 1, 'it is tried again')
    queue.close()
  })

  it('retries a pod that was updated during its binding, if the update may help', async () => {
    const pods = new Map([['d/p', podOf('p')]])
    const seen: string[] = []
    const { queue } = start(
      {
        eventsToRegister: [{ resource: 'TargetPod', actions: ['labels'] }],
        bind({ labels }) {
          seen.push(labels?.['is'] ?? '')
          pods.set('d/p', podOf('p', { is: 'better' }))
          return Promise.resolve(labels?.['is'] === 'better' ? undefined : unschedulable('not good enough'))
        },
      },
      pods,
    )
    await clock.advance(5000)
    assert.deepEqual(seen, ['', 'better'])
    assert.equal(queue.sizes.unschedulable, 0)
    queue.close()
  })
})
