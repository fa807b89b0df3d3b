import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createRoom } from './room.ts'

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Enters for each user and size in turn; tells who is in, and lets one out by number. */
function visitors(
  userBytes: number,
  totalBytes: number,
): {
  readonly inside: Set<number>
  readonly come: (user: string, bytes: number) => number
  readonly go: (visitor: number) => Promise<void>
} {
  const room = createRoom({ userBytes, totalBytes })
  const inside = new Set<number>()
  const leaving: (() => void)[] = []
  let count = 0
  return {
    inside,
    come(user, bytes) {
      const visitor = count++
      const visit = async (): Promise<void> => {
        leaving[visitor] = await room.enter(user, bytes)
        inside.add(visitor)
      }
      void visit()
      return visitor
    },
    async go(visitor) {
      inside.delete(visitor)
      leaving[visitor]?.()
      await settle()
    },
  }
}

describe('a room', () => {
  it('keeps out what a user has no room for, and nobody else', async () => {
    const { inside, come, go } = visitors(10, 100)
    const [first, second, other] = [come('a', 6), come('a', 6), come('b', 6)]
    await settle()
    assert.deepEqual([...inside], [first, other])
    await go(first)
    assert.deepEqual([...inside], [other, second])
  })

  it('keeps everybody out when there is no room at all, and lets users in by turns', async () => {
    const { inside, come, go } = visitors(100, 10)
    const first = come('a', 10)
    const [again, other] = [come('a', 10), come('b', 10)]
    await settle()
    assert.deepEqual([...inside], [first])
    await go(first)
    assert.deepEqual([...inside], [again])
    const third = come('a', 10)
    await go(again)
    assert.deepEqual([...inside], [other], 'who has waited longer than the next of the same user')
    await go(other)
    assert.deepEqual([...inside], [third])
  })

  it('has room for one thing of anybody, however large', async () => {
    const { inside, come } = visitors(10, 20)
    come('a', 1000)
    await settle()
    assert.equal(inside.size, 1)
  })
})
