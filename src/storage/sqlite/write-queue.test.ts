import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'

import { StorageError } from '../backend.ts'
import type { Operation, Result } from './messages.ts'
import { WriteQueue } from './write-queue.ts'

const done: Result = ['done']
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function createQueue(): { queue: WriteQueue; sent: (readonly Operation[])[] } {
  const sent: (readonly Operation[])[] = []
  return { sent, queue: new WriteQueue((operations) => void sent.push(operations), realClock) }
}

describe('WriteQueue of the SQLite backend', () => {
  it('sends the operations of one event loop turn as one message', async () => {
    const { queue, sent } = createQueue()
    for (let n = 0; n < 3; n++) {
      void queue.submit(['compact', n], () => undefined)
      await Promise.resolve()
    }
    assert.deepEqual(sent, [])
    await turn()
    assert.deepEqual(sent, [[0, 1, 2].map((n) => ['compact', n])])
  })

  it('resolves with the value that the writer published', async () => {
    const { queue } = createQueue()
    const made = queue.submit(['compact', 1], (result) => result[0])
    queue.deliver([done], 1)
    assert.equal(await made, 'done')
  })

  it('publishes all results in order at once, and settles promises in portions', async () => {
    const { queue } = createQueue()
    const published: number[] = []
    let settled = 0
    for (let n = 0; n < 100; n++) {
      void queue.submit(['compact', n], () => void published.push(n)).then(() => settled++)
    }
    await Promise.resolve()
    queue.deliver(
      Array.from({ length: 60 }, () => done),
      1,
    )
    queue.deliver(
      Array.from({ length: 40 }, () => done),
      1,
    )
    assert.deepEqual(
      published,
      Array.from({ length: 100 }, (_, n) => n),
    )
    await Promise.resolve()
    const first = settled
    await queue.drained()
    assert.ok(first < 100 && first > 0)
    await turn()
    assert.equal(settled, 100)
  })

  it('rejects only the promise of a failed operation', async () => {
    const { queue } = createQueue()
    const results = [0, 1, 2].map((n) => queue.submit(['compact', n], () => undefined))
    queue.deliver([done, ['error', { code: 'no-space', message: 'Full' }], done], 1)
    const states = (await Promise.allSettled(results)).map(({ status }) => status)
    assert.deepEqual(states, ['fulfilled', 'rejected', 'fulfilled'])
  })

  it('rejects all promises when the writer thread has ended', async () => {
    const { queue } = createQueue()
    const waiting = queue.submit(['compact', 1], () => assert.fail('never done'))
    queue.fail(new StorageError('unavailable', 'Gone'))
    await assert.rejects(waiting, /Gone/)
    await assert.rejects(
      queue.submit(['compact', 2], () => undefined),
      /Gone/,
    )
    await queue.drained()
  })
})
