import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import { controllerSettings } from '../../settings.ts'
import { evictionRate, TaintQueue, zoneState } from './zones.ts'

describe('zoneStateOf() in the node lifecycle controller', () => {
  const cases: readonly [ready: number, all: number, state: string][] = [
    [0, 0, 'Normal'],
    [1, 1, 'Normal'],
    [0, 1, 'FullDisruption'],
    [1, 3, 'Normal'],
    [1, 4, 'PartialDisruption'],
    [9, 20, 'PartialDisruption'],
    [10, 20, 'Normal'],
    [0, 20, 'FullDisruption'],
  ]
  for (const [ready, all, state] of cases) {
    it(`returns ${state} if ${ready} of ${all} nodes are ready`, () => {
      assert.equal(zoneState({ ready, all }, 0.55), state)
    })
  }

  it('determines the eviction rate of the zone', () => {
    const settings = controllerSettings()
    assert.equal(evictionRate('Normal', 100, settings), 0.1)
    assert.equal(evictionRate('FullDisruption', 100, settings), 0.1)
    assert.equal(evictionRate('PartialDisruption', 51, settings), 0.01)
    assert.equal(evictionRate('PartialDisruption', 50, settings), 0)
  })
})

describe('TaintQueue of a zone', () => {
  const served = async (queue: TaintQueue): Promise<string[]> => {
    const names: string[] = []
    await queue.serve((name) => Promise.resolve(names.push(name) > 0))
    return names
  }

  it('taints nodes in order at the rate of the zone', async () => {
    const clock = createVirtualClock()
    const queue = new TaintQueue(clock, 0.1)
    for (const name of ['a', 'b', 'c']) queue.add(name)
    assert.deepEqual(await served(queue), ['a'])
    await clock.advance(9000)
    assert.deepEqual(await served(queue), [])
    await clock.advance(1000)
    assert.deepEqual(await served(queue), ['b'])
    queue.setRate(0)
    await clock.advance(60_000)
    assert.deepEqual(await served(queue), [])
    queue.setRate(1)
    assert.deepEqual(await served(queue), [], 'who had to wait goes on waiting')
    await clock.advance(1000)
    assert.deepEqual(await served(queue), ['c'])
  })

  it('taints a node once until it is removed from the queue', async () => {
    const clock = createVirtualClock()
    const queue = new TaintQueue(clock, 1000)
    queue.add('a')
    await served(queue)
    queue.add('a')
    await clock.advance(1000)
    assert.deepEqual(await served(queue), [])
    queue.remove('a')
    queue.add('a')
    assert.deepEqual(await served(queue), ['a'])
  })

  it('keeps a node in the queue if its taint was not written', async () => {
    const queue = new TaintQueue(createVirtualClock(), 0.1)
    queue.add('a')
    await queue.serve(() => Promise.resolve(false))
    assert.equal(queue.size, 1)
  })
})
