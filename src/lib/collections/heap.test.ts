import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createSeededRandom } from '../random.ts'
import { KeyedHeap } from './heap.ts'

interface Job {
  readonly name: string
  readonly rank: number
}

const byRank = { key: (job: Job) => job.name, compare: (a: Job, b: Job) => a.rank - b.rank }

function drain(heap: KeyedHeap<Job>): Job[] {
  const out: Job[] = []
  for (let job = heap.pop(); job !== undefined; job = heap.pop()) out.push(job)
  return out
}

describe('keyed heap', () => {
  it('pops items by rank, and equal ones by arrival', () => {
    const heap = new KeyedHeap<Job>(byRank)
    for (const [name, rank] of [
      ['c', 3],
      ['a1', 1],
      ['b', 2],
      ['a2', 1],
      ['a3', 1],
    ] as const)
      heap.put({ name, rank })
    assert.equal(heap.peek()?.name, 'a1')
    assert.equal(heap.size, 5)
    assert.deepEqual(
      drain(heap).map((job) => job.name),
      ['a1', 'a2', 'a3', 'b', 'c'],
    )
    assert.equal(heap.peek(), undefined)
    assert.equal(heap.pop(), undefined)
  })

  it('moves an item that is put again instead of adding a copy', () => {
    const heap = new KeyedHeap<Job>(byRank)
    for (let rank = 0; rank < 10; rank++) heap.put({ name: `job-${rank}`, rank })
    heap.put({ name: 'job-9', rank: -1 })
    heap.put({ name: 'job-0', rank: 100 })
    assert.equal(heap.size, 10)
    assert.equal(heap.get('job-0')?.rank, 100)
    const names = drain(heap).map((job) => job.name)
    assert.equal(names[0], 'job-9')
    assert.equal(names.at(-1), 'job-0')
  })

  it('removes an item by key', () => {
    const heap = new KeyedHeap<Job>(byRank)
    for (let rank = 0; rank < 10; rank++) heap.put({ name: `job-${rank}`, rank })
    assert.deepEqual(heap.remove('job-4'), { name: 'job-4', rank: 4 })
    assert.equal(heap.remove('job-4'), undefined)
    assert.equal(heap.has('job-4'), false)
    assert.deepEqual(
      [...heap.items()].map((job) => job.rank).sort((a, b) => a - b),
      [0, 1, 2, 3, 5, 6, 7, 8, 9],
    )
    assert.deepEqual(
      drain(heap).map((job) => job.rank),
      [0, 1, 2, 3, 5, 6, 7, 8, 9],
    )
  })

  it('is empty after clear()', () => {
    const heap = new KeyedHeap<Job>(byRank)
    heap.put({ name: 'a', rank: 1 })
    heap.clear()
    assert.equal(heap.size, 0)
    assert.equal(heap.has('a'), false)
    heap.put({ name: 'a', rank: 2 })
    assert.deepEqual(heap.pop(), { name: 'a', rank: 2 })
  })

  it('agrees with a sorted list after any puts, removals and pops', () => {
    const key = fc.integer({ min: 0, max: 20 }).map(String)
    const step = fc.oneof(
      fc.record({ do: fc.constant('put' as const), name: key, rank: fc.integer({ min: 0, max: 5 }) }),
      fc.record({ do: fc.constant('remove' as const), name: key }),
      fc.record({ do: fc.constant('pop' as const) }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
        const heap = new KeyedHeap<Job>(byRank)
        // A Map keeps a replaced key in place, which is exactly the promised order among equals.
        const model = new Map<string, Job>()
        const first = (): Job | undefined => [...model.values()].sort(byRank.compare)[0]
        for (const act of steps) {
          if (act.do === 'put') {
            const job = { name: act.name, rank: act.rank }
            heap.put(job)
            model.set(act.name, job)
          } else if (act.do === 'remove') {
            assert.equal(heap.remove(act.name), model.get(act.name))
            model.delete(act.name)
          } else {
            const job = first()
            assert.equal(heap.pop(), job)
            if (job !== undefined) model.delete(job.name)
          }
          assert.equal(heap.peek(), first())
          assert.equal(heap.size, model.size)
        }
      }),
    )
  })

  it('needs at most a logarithmic number of comparisons', () => {
    let compared = 0
    const heap = new KeyedHeap<number, number>({
      key: (item) => item,
      compare: (a, b) => {
        compared++
        return a - b
      },
    })
    const random = createSeededRandom(1)
    const count = 1 << 14
    for (let left = count; left > 0; left--) heap.put(random.int(2 ** 40))
    const contents = [...heap.items()]
    compared = 0
    for (const item of contents) assert.equal(heap.remove(item), item)
    assert.ok(compared <= contents.length * 3 * 14, `${compared} comparisons`)
  })
})
