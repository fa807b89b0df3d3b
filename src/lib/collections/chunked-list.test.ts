import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { ChunkedList } from './chunked-list.ts'

const steps = fc.array(
  fc.record({ kind: fc.constantFrom('insert', 'remove', 'set', 'get'), where: fc.nat(10_000), burst: fc.nat(1500) }),
  { maxLength: 8 },
)

/** Does one step to the list and to a plain array, which must agree. */
function apply(list: ChunkedList<unknown>, plain: unknown[], kind: string, index: number): void {
  if (kind === 'insert') {
    const item = { index }
    list.insert(index, item)
    plain.splice(index, 0, item)
  } else if (kind === 'remove') assert.equal(list.remove(index), plain.splice(index, 1)[0])
  else if (kind === 'set') {
    list.set(index, index)
    plain[index] = index
  } else assert.equal(list.get(index), plain[index])
}

describe('ChunkedList', () => {
  it('holds the same elements as an array after the same changes', () => {
    fc.assert(
      fc.property(fc.nat(5000), steps, (length, changes) => {
        const plain: unknown[] = Array.from({ length }, (_, at) => at)
        const list = new ChunkedList(plain)
        for (const { kind, where, burst } of changes) {
          for (let n = 0; n <= burst; n++) {
            if (kind !== 'insert' && plain.length === 0) break
            apply(list, plain, kind, where % (kind === 'insert' ? plain.length + 1 : plain.length))
          }
        }
        assert.equal(list.length, plain.length)
        assert.deepEqual(list.toArray(), plain)
      }),
    )
  })
})
