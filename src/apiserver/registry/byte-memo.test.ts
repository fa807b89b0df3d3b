import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ByteMemo, type Memo } from './byte-memo.ts'

const kept = (value: string): { value: string; bytes: number } => ({ value, bytes: 800 })

describe('ByteMemo', () => {
  it('evicts the least recently used value', () => {
    const memos = new ByteMemo(3000)
    const memo: Memo = new Map()
    for (const name of ['a', 'b', 'c']) memos.keep(memo, name, kept(name))
    assert.equal(memos.get(memo, 'a'), 'a')
    memos.keep(memo, 'd', kept('d'))
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map((name) => memos.get(memo, name)),
      ['a', undefined, 'c', 'd'],
    )
  })

  it('stays within its byte limit, also for a single value that exceeds it', () => {
    const memos = new ByteMemo(3000)
    for (let turn = 0; turn < 100; turn++) memos.keep(new Map(), 'x', kept('x'))
    assert.ok(memos.bytes <= 3000)
    const memo: Memo = new Map()
    memos.keep(memo, 'huge', { value: 'huge', bytes: 10_000 })
    assert.deepEqual([memo.size, memos.bytes], [0, 0])
  })

  it('evicts values that were unused for two sweeps', () => {
    const memos = new ByteMemo(1e6)
    const memo: Memo = new Map()
    for (const name of ['a', 'b', 'c']) memos.keep(memo, name, kept(name))
    memos.age()
    assert.equal(memos.get(memo, 'b'), 'b')
    memos.keep(memo, 'd', kept('d'))
    memos.age()
    assert.deepEqual([...memo.keys()], ['b', 'd'])
    memos.age()
    memos.age()
    assert.deepEqual([memo.size, memos.bytes], [0, 0])
  })

  it('remembers at most a thousand keys for isRepeated()', () => {
    const memos = new ByteMemo(0)
    assert.deepEqual([memos.isRepeated('a'), memos.isRepeated('a')], [false, true])
    for (let turn = 0; turn < 1000; turn++) memos.isRepeated(String(turn))
    assert.equal(memos.isRepeated('a'), false)
    assert.deepEqual([memos.isRepeated('x'.repeat(501)), memos.isRepeated('x'.repeat(501))], [false, false])
  })

  it('returns the new value of a key after its map was cleared', () => {
    const memos = new ByteMemo(2500)
    const memo: Memo = new Map()
    memos.keep(memo, 'page', kept('old'))
    memo.clear()
    memos.keep(memo, 'page', kept('new'))
    memos.keep(new Map(), 'other', kept('other'))
    assert.equal(memos.get(memo, 'page'), 'new')
  })
})
