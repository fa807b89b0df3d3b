import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'

import { createVirtualClock } from '../clock.ts'
import { tidyWhenQuiet } from './tidy-memory.ts'

const LOOK_MS = 10_000
const MB = 1 << 20

interface World {
  busy: number
  ownMb: number
  heapMb: number
  /** `c` for each time it collected, `g` for each time it gave back. */
  done: string
  look(times: number): Promise<void>
}

/** A process of which the test says how busy it is and how much it holds. */
function createWorld(t: TestContext): World {
  const clock = createVirtualClock()
  const world: World = {
    busy: 0.01,
    ownMb: 100,
    heapMb: 50,
    done: '',
    look: (times) => clock.advance(times * LOOK_MS),
  }
  const tidying = tidyWhenQuiet(clock, {
    busy: () => world.busy,
    ownBytes: () => world.ownMb * MB,
    heapBytes: () => world.heapMb * MB,
    collect: () => void (world.done += 'c'),
    giveBack: () => void (world.done += 'g'),
  })
  t.after(() => tidying[Symbol.dispose]())
  return world
}

describe('memory of an idle process', () => {
  it('is collected and returned once after a burst, but not while the process is busy', async (t) => {
    const world = createWorld(t)
    world.busy = 0.5
    await world.look(3)
    assert.equal(world.done, '')
    world.busy = 0.01
    await world.look(1)
    assert.equal(world.done, 'c')
    await world.look(3)
    assert.equal(world.done, 'cg')
    world.ownMb += 7
    await world.look(2)
    assert.equal(world.done, 'cg', 'too little to be worth it')
    world.ownMb += 1
    await world.look(2)
    assert.equal(world.done, 'cgcg')
  })

  it('is collected once more after some minutes, and then no more', async (t) => {
    const world = createWorld(t)
    await world.look(9)
    assert.equal(world.done, 'cg')
    await world.look(2)
    assert.equal(world.done, 'cgcg')
    await world.look(200)
    assert.equal(world.done, 'cgcgcg')
  })

  it('is kept if the process becomes busy before the return', async (t) => {
    const world = createWorld(t)
    await world.look(1)
    world.busy = 0.5
    await world.look(1)
    world.busy = 0.01
    await world.look(2)
    assert.equal(world.done, 'ccg')
  })

  it('is not collected if the heap is large, which would block for long', async (t) => {
    const world = createWorld(t)
    world.heapMb = 200
    await world.look(3)
    assert.equal(world.done, 'g')
  })
})
