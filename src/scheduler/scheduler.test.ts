import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Node, Pod } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Cluster } from './cluster.ts'
import { type Handle, type Plugin, unschedulable } from './framework.ts'
import { UNMETERED } from './meters.ts'
import { Nominations } from './nominations.ts'
import { PodInfo } from './pod-info.ts'
import type { Profile } from './profile.ts'
import { SchedulingQueue } from './queue.ts'
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

interface Started {
  readonly queue: SchedulingQueue
  /** What went wrong, and what pods were told. */
  readonly errors: string[]
  readonly notes: string[]
}

/** With one node and one plugin. `pods`: as they are stored. */
function start(plugin: Plugin, pods: Map<string, Pod>): Started {
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
    parkedAtMostMs: 300_000,
    compare: () => 0,
    preEnqueue: () => undefined,
    wakesOf: () => plugin.wakes ?? [],
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

describe('the scheduler', () => {
  it('keeps no pod waiting because of another that nobody can think about, and tells that one', async () => {
    const bound: string[] = []
    const pods = new Map(['odd', 'plain'].map((name) => [`d/${name}`, podOf(name)]))
    const { queue, errors, notes } = start(
      {
        preFilter({ uid }) {
          if (uid === 'odd') throw new Error('nobody has seen such a pod')
          return undefined
        },
        bind: ({ uid }) => (bound.push(uid), Promise.resolve(undefined)),
      },
      pods,
    )
    await clock.advance(1)
    assert.deepEqual(bound, ['plain'])
    assert.deepEqual(errors, ['nobody has seen such a pod'])
    assert.deepEqual(notes, ['nobody has seen such a pod', 'Successfully assigned d/plain to n'])
    assert.equal(queue.sizes.backoff, 1)
    await clock.advance(3000)
    assert.ok(errors.length > 1, 'it is tried again')
    queue.close()
  })

  it('tries a pod again that was changed while it was on its way, where that may help', async () => {
    const pods = new Map([['d/p', podOf('p')]])
    const seen: string[] = []
    const { queue } = start(
      {
        wakes: [{ on: 'TargetPod', actions: ['labels'] }],
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
