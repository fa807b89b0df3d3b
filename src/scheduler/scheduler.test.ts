import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Node, Pod } from '#apis/core/v1.ts'
import type { SeriesRecorder } from '#client/event-series.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { Cluster } from './cluster.ts'
import type { Handle, Plugin } from './framework.ts'
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

describe('the scheduler', () => {
  it('keeps no pod waiting because of another that nobody can think about', async () => {
    const clock = createVirtualClock()
    const cluster = new Cluster(() => ({}))
    cluster.setNode({ metadata: { name: 'n' }, spec: {}, status: {} } as Node)
    const pods: Pod[] = ['odd', 'plain'].map((name) => ({
      metadata: { namespace: 'd', name, uid: name },
      spec: { containers: [] },
      status: {},
    }))
    const errors: string[] = []
    const bound: string[] = []
    const handle = {
      clock,
      random: createSeededRandom(1),
      meter: UNMETERED,
      log: { error: (error: unknown) => errors.push((error as Error).message) },
      of: () => ({ get: (key: string) => pods.find(({ metadata }) => `d/${metadata.name}` === key) }),
    } as unknown as Handle
    const profile = profileOf({
      compare: () => 0,
      preFilter({ uid }) {
        if (uid === 'odd') throw new Error('nobody has seen such a pod')
        return undefined
      },
      bind: ({ uid }) => (bound.push(uid), Promise.resolve(undefined)),
    })
    const queue = new SchedulingQueue({
      clock,
      initialBackoffMs: 1000,
      maxBackoffMs: 10_000,
      parkedAtMostMs: 300_000,
      compare: () => 0,
      preEnqueue: () => undefined,
      wakesOf: () => [],
      ready: () => scheduler.wake(),
    })
    const scheduler: Scheduler = new Scheduler({
      handle,
      cluster,
      queue,
      nominations: new Nominations(),
      profiles: new Map([[profile.name, profile]]),
      extenders: [],
      recorderOf: () => ({ record() {} }) as unknown as SeriesRecorder,
      signal: new AbortController().signal,
    })
    scheduler.begin()
    for (const pod of pods) queue.add(new PodInfo(pod))
    await clock.advance(1)
    assert.deepEqual(bound, ['plain'])
    assert.deepEqual(errors, ['nobody has seen such a pod'])
    assert.equal(queue.sizes.backoff, 1)
    await clock.advance(3000)
    assert.ok(errors.length > 1, 'it is tried again')
    queue.close()
  })
})
