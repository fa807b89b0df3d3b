import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createMemoryBudget } from './response-memory.ts'

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Reserves for each user and size in turn; lists the granted ones, and releases one by number. */
function visitors(
  userBytes: number,
  totalBytes: number,
): {
  readonly inside: Set<number>
  readonly come: (user: string, bytes: number) => number
  readonly go: (visitor: number) => Promise<void>
} {
  const room = createMemoryBudget({ userBytes, totalBytes })
  const inside = new Set<number>()
  const leaving: (() => void)[] = []
  let count = 0
  return {
    inside,
    come(user, bytes) {
      const visitor = count++
      const visit = async (): Promise<void> => {
        leaving[visitor] = await room.reserve(user, bytes)
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

describe('memory budget of responses', () => {
  it('delays only the requests of a user that exceeds its share', async () => {
    const { inside, come, go } = visitors(10, 100)
    const [first, second, other] = [come('a', 6), come('a', 6), come('b', 6)]
    await settle()
    assert.deepEqual([...inside], [first, other])
    await go(first)
    assert.deepEqual([...inside], [other, second])
  })

  it('delays requests of all users when the total is exceeded, and then serves users in rotation', async () => {
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

  it('always grants the first reservation, regardless of its size', async () => {
    const { inside, come } = visitors(10, 20)
    come('a', 1000)
    await settle()
    assert.equal(inside.size, 1)
  })
})
