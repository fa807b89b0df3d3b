import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { StorageErrorCode } from '#storage/backend.ts'

import type { History, Operation, WatchRecord } from '../history.ts'
import type { Calls, Change, Item, Method, TextWrite } from '../store.ts'
import { checkHistory } from './check.ts'

const item = (key: string, value: string, mod: number, create = mod): Item => ({ key, value, create, mod, lease: 0 })

/** Writes down operations one after the other; `pending` ones never end. */
class Story implements History {
  readonly operations: Operation[] = []
  readonly watches: WatchRecord[] = []
  #tick = 0

  done<M extends Method>(method: M, argument: Calls[M]['argument'], result: Calls[M]['result']): this {
    const [start, end] = [++this.#tick, ++this.#tick]
    this.operations.push({ client: 1, method, argument, start, startMs: start, end, endMs: end, result } as Operation)
    return this
  }

  pending<M extends Method>(method: M, argument: Calls[M]['argument'], code: StorageErrorCode = 'unavailable'): this {
    const start = ++this.#tick
    const error = { code, message: code }
    this.operations.push({
      client: 1,
      method,
      argument,
      start,
      startMs: start,
      end: Infinity,
      endMs: Infinity,
      error,
    } as Operation)
    return this
  }

  put(key: string, value: string, revision: number, previous: Item | null = null): this {
    return this.done('commit', [{ key, value }], { ok: true, revision, items: [previous] })
  }

  get(key: string, revision: number, found?: Item): this {
    const items = found === undefined ? [] : [found]
    return this.done('range', { start: key, via: 'backend' }, { items, more: false, count: items.length, revision })
  }

  watch(from: number, ...batches: (readonly [revision: number, ...events: Change[]])[]): this {
    const seen = batches.map(([revision, ...events]) => ({ revision, events, tick: ++this.#tick, ms: this.#tick }))
    this.watches.push({ client: 2, request: { start: '/', end: '0', from, via: 'backend' }, opened: 0, batches: seen })
    return this
  }

  rules(): string[] {
    return [...new Set(checkHistory(this, { leaseGraceMs: 1000 }).map(({ rule }) => rule))].sort()
  }
}

const put = (now: Item, previous?: Item): Change => ({ type: 'put', ...now, ...(previous && { previous }) })
const gone = (previous: Item, mod: number): Change => ({ type: 'delete', ...previous, mod, previous })
const A1 = item('/a', 'one', 1)
const A2 = item('/a', 'two', 2, 1)
const B3 = item('/b', 'three', 3)
/** Three writes, as they should be. */
const story = (): Story => new Story().put('/a', 'one', 1).put('/a', 'two', 2, A1).put('/b', 'three', 3)

describe('linearizability check of a store', () => {
  it('accepts a correct history', () => {
    assert.deepEqual(story().get('/a', 3, A2).get('/c', 3).rules(), [])
  })

  const wrong: readonly (readonly [name: string, history: Story, rules: string[]])[] = [
    ['a read that misses an acknowledged write', story().get('/a', 1, A1), ['real-time order']],
    ['a read of a value of another revision', story().get('/a', 3, A1), ['linearizable']],
    ['a read of a value that was never written', story().get('/a', 3, item('/a', 'ghost', 2, 1)), ['linearizable']],
    ['a key that is missing', story().get('/b', 3), ['linearizable']],
    [
      'a wrong count',
      story().done(
        'range',
        { start: '/', end: '0', limit: 1, via: 'backend' },
        { items: [A2], more: true, count: 3, revision: 3 },
      ),
      ['linearizable'],
    ],
    ['a repeated revision', story().put('/c', 'four', 3), ['unique revision']],
    ['a revision that goes back', story().done('revision', null, 2), ['real-time order']],
    ['a commit with a wrong previous value', story().put('/a', 'four', 4, A1), ['linearizable']],
    [
      'a wrongly passed guard',
      story().done('commit', [{ key: '/a', value: 'x', expected: 1 }], { ok: true, revision: 4, items: [A2] }),
      ['linearizable'],
    ],
    [
      'a wrongly refused guard',
      story().done('commit', [{ key: '/a', value: 'x', expected: 2 }], { ok: false, revision: 3, items: [A2] }),
      ['linearizable'],
    ],
    [
      'a refused write that is visible',
      story()
        .done('commit', [{ key: '/b', value: 'x', expected: 1 }], { ok: false, revision: 3, items: [B3] })
        .get('/b', 4, item('/b', 'x', 4, 3)),
      ['linearizable'],
    ],
    [
      'a read of a past state that never existed',
      story().done(
        'range',
        { start: '/b', revision: 2, via: 'backend' },
        { items: [B3], more: false, count: 1, revision: 2 },
      ),
      ['linearizable'],
    ],
  ]
  for (const [name, history, rules] of wrong) it(`detects ${name}`, () => assert.deepEqual(history.rules(), rules))

  const unknown = (writes: readonly TextWrite[]): Story => story().pending('commit', writes)

  it('accepts both outcomes of an unacknowledged write', () => {
    const write = [{ key: '/b', value: 'maybe' }]
    assert.deepEqual(unknown(write).get('/b', 3, B3).rules(), [])
    assert.deepEqual(
      unknown(write)
        .get('/b', 4, item('/b', 'maybe', 4, 3))
        .rules(),
      [],
    )
    assert.deepEqual(
      unknown(write)
        .get('/b', 3, B3)
        .get('/b', 4, item('/b', 'maybe', 4, 3))
        .rules(),
      [],
    )
  })

  it('rejects an unacknowledged write that is reverted or happens twice', () => {
    const [write, seen] = [[{ key: '/b', value: 'maybe' }], item('/b', 'maybe', 4, 3)]
    assert.deepEqual(unknown(write).get('/b', 4, seen).get('/b', 4, B3).rules(), ['linearizable'])
    assert.deepEqual(
      unknown(write)
        .get('/b', 4, seen)
        .get('/b', 5, { ...seen, mod: 5 })
        .rules(),
      ['linearizable', 'unique revision'],
    )
  })

  it('rejects an unacknowledged write that happens partly', () => {
    const writes = [
      { key: '/b', value: 'maybe' },
      { key: '/c', value: 'maybe too' },
    ]
    assert.deepEqual(
      unknown(writes)
        .get('/b', 4, item('/b', 'maybe', 4, 3))
        .get('/c', 4)
        .rules(),
      ['linearizable'],
    )
  })

  it('finds an unacknowledged delete by the missing key', () => {
    const remove = [{ key: '/b', value: null }]
    assert.deepEqual(unknown(remove).get('/b', 4).rules(), [])
    assert.deepEqual(unknown(remove).get('/b', 3).rules(), ['linearizable'], 'there is no revision for it')
    assert.deepEqual(
      unknown([{ key: '/b', value: null, expected: 2 }])
        .get('/b', 4)
        .rules(),
      ['linearizable'],
    )
    const again = item('/b', 'again', 5)
    assert.deepEqual(unknown(remove).put('/b', 'again', 5).get('/b', 5, again).rules(), [])
    assert.deepEqual(unknown(remove).put('/b', 'again', 5).put('/b', 'more', 7).rules(), ['linearizable'], 'only once')
  })
})

describe('search for unobserved events in a store history', () => {
  const both: readonly TextWrite[] = [
    { key: '/c', value: 'unseen' },
    { key: '/b', value: null },
  ]

  it('finds another cause for a delete if the first does not explain all missing keys', () => {
    const asked = (...pending: (readonly TextWrite[])[]): Story => {
      const told = story()
      for (const writes of pending) told.pending('commit', writes)
      told.watch(4, [4, gone(B3, 4)])
      Object.assign(told.watches[0]?.request as object, { start: '/b', end: '/c' })
      return told
    }
    const [one, two] = [[{ key: '/b', value: null }], ['/b', '/a'].map((key) => ({ key, value: null }))]
    assert.deepEqual(asked(one, two).get('/a', 4).rules(), [])
    assert.deepEqual(asked(one, two).get('/a', 4, A2).rules(), [])
    assert.deepEqual(asked(one).get('/a', 4).rules(), ['linearizable'])
    const thrice = [...two, { key: '/c', value: null, expected: 9 }]
    assert.deepEqual(asked(one, thrice).get('/a', 4).rules(), ['linearizable'], 'its guard was not met')
  })

  it('finds an overwritten write by the creation revision of its key', () => {
    const overwritten = (): Story =>
      story()
        .pending('commit', [{ key: '/c', value: 'first' }])
        .pending('commit', [{ key: '/c', value: 'second' }])
    assert.deepEqual(
      overwritten()
        .get('/c', 5, item('/c', 'second', 5, 4))
        .rules(),
      [],
    )
    assert.deepEqual(
      overwritten()
        .get('/c', 6, item('/c', 'second', 6, 4))
        .rules(),
      [],
    )
    assert.deepEqual(
      overwritten()
        .get('/c', 5, item('/c', 'second', 5, 2))
        .rules(),
      ['linearizable'],
      '2 was another',
    )
    const guarded = story().pending('commit', [{ key: '/c', value: 'first', expected: 3 }])
    guarded.pending('commit', [{ key: '/c', value: 'second' }])
    assert.deepEqual(guarded.get('/c', 5, item('/c', 'second', 5, 4)).rules(), ['linearizable'])
  })

  it('finds a commit of several keys by a missing key', () => {
    assert.deepEqual(story().pending('commit', both).get('/b', 4).rules(), [])
    assert.deepEqual(
      story()
        .pending('commit', both)
        .get('/b', 4)
        .get('/c', 4, item('/c', 'unseen', 4))
        .rules(),
      [],
    )
    assert.deepEqual(story().pending('commit', both).get('/b', 4).get('/c', 4).rules(), ['linearizable'])
    assert.deepEqual(
      story()
        .pending('commit', both)
        .watch(4, [4, gone(B3, 4)])
        .rules(),
      ['atomic', 'reliable'],
    )
  })

  it('finds a delete by the guard that it allowed', () => {
    const history = story().pending('commit', [{ key: '/b', value: null }])
    history.pending('commit', [{ key: '/b', value: 'anew', expected: 0 }])
    assert.deepEqual(history.get('/b', 5, item('/b', 'anew', 5)).rules(), [])
  })

  it('tries every possible commit', () => {
    const history = story().pending('commit', [
      { key: '/b', value: null },
      { key: '/a', value: 'wrong one' },
    ])
    history
      .pending('commit', both)
      .get('/b', 4)
      .get('/a', 4, A2)
      .get('/c', 4, item('/c', 'unseen', 4))
    assert.deepEqual(history.rules(), [])
    const other = story().pending('commit', [
      { key: '/b', value: null },
      { key: '/a', value: 'wrong one' },
    ])
    other
      .pending('commit', [{ key: '/b', value: null }])
      .get('/b', 4)
      .get('/a', 4, A2)
    assert.deepEqual(other.rules(), [])
  })
})

describe('watch check of a store', () => {
  const whole = [put(A1), put(A2, A1), put(B3)] as const

  it('accepts correct events in any batches from any revision', () => {
    assert.deepEqual(
      story()
        .watch(1, [3, ...whole])
        .watch(2, [2, put(A2, A1)], [3, put(B3)], [3])
        .watch(9, [8])
        .rules(),
      [],
    )
  })

  const wrong: readonly (readonly [name: string, history: Story, rule: string])[] = [
    ['filter (only events of the requested keys)', story().watch(2, [3, ...whole]), 'filter'],
    [
      'ordered (events in order of revision)',
      story().watch(1, [1, put(A1)], [3, put(B3)], [3, put(A2, A1)]),
      'ordered',
    ],
    ['unique (each event once)', story().watch(1, [2, put(A1), put(A2, A1), put(A2, A1)], [3, put(B3)]), 'unique'],
    [
      'bookmarkable (no older event after a bookmark)',
      story().watch(1, [1, put(A1)], [2], [3, put(A2, A1), put(B3)]),
      'bookmarkable',
    ],
    ['resumable (all events since the start revision)', story().watch(2, [3, put(B3)]), 'resumable'],
    [
      'is-create (correct creation revision)',
      story().watch(1, [3, put(A1), put({ ...A2, create: 2 }, A1), put(B3)]),
      'is-create',
    ],
    ['reliable (no missing event)', story().watch(1, [3, put(A1), put(B3)]), 'reliable'],
    [
      'prev-value (correct previous value)',
      story().watch(1, [3, put(A1), put(A2, { ...A1, value: 'none' }), put(B3)]),
      'prev-value',
    ],
    ['no bookmark of a future revision', new Story().watch(1, [1]).put('/a', 'one', 1), 'real-time order'],
    ['no event of a write that never happened', story().watch(1, [4, ...whole, gone(B3, 4)]), 'linearizable'],
  ]
  for (const [name, history, rule] of wrong) {
    it(`detects a violation of the guarantee: ${name}`, () =>
      assert.ok(history.rules().includes(rule), history.rules().join(', ')))
  }

  it('detects a violation of the guarantee: atomic (all events of a revision in one batch)', () => {
    const writes = [
      { key: '/a', value: 'one' },
      { key: '/b', value: 'uno' },
    ]
    const both = (): Story => new Story().done('commit', writes, { ok: true, revision: 1, items: [null, null] })
    const [a, b] = [put(A1), put(item('/b', 'uno', 1))]
    assert.deepEqual(both().watch(1, [1, a, b]).rules(), [])
    assert.ok(both().watch(1, [1, a], [1, b]).rules().includes('atomic'))
  })

  it('detects a watch that does not reach the newest revision', () => {
    const history = story().watch(1, [2, put(A1), put(A2, A1)])
    history.watches[0]!.stuckBefore = 3
    assert.deepEqual(history.rules(), ['reliable'])
  })
})

describe('lease check of a store', () => {
  const LEASE = 77
  const leased = { ...A1, lease: LEASE }
  const granted = (ttlMs: number): Story =>
    new Story()
      .done('grant', ttlMs, LEASE)
      .done('commit', [{ key: '/a', value: 'one', lease: LEASE }], { ok: true, revision: 1, items: [null] })

  it('accepts deletions after a lease is revoked or expired, and not before', () => {
    assert.deepEqual(granted(5000).done('revoke', LEASE, null).get('/a', 2).rules(), [])
    assert.deepEqual(
      granted(0)
        .watch(1, [2, put(leased), gone(leased, 2)])
        .rules(),
      [],
    )
    assert.deepEqual(
      granted(5000)
        .watch(1, [2, put(leased), gone(leased, 2)])
        .rules(),
      ['linearizable'],
    )
    assert.deepEqual(granted(5000).get('/a', 2).rules(), ['linearizable'])
  })

  it('rejects keys that outlive their lease', () => {
    assert.deepEqual(granted(5000).done('revoke', LEASE, null).get('/a', 1, leased).rules(), ['lease'])
  })

  it('combines deletions that watchers of different keys observed', () => {
    const other = { ...item('/b', 'two', 2), lease: LEASE }
    const history = granted(5000).done('commit', [{ key: '/b', value: 'two', lease: LEASE }], {
      ok: true,
      revision: 2,
      items: [null],
    })
    history.done('revoke', LEASE, null).watch(2, [3, put(other), gone(other, 3)])
    history.watches[0] = { ...history.watches[0]!, request: { start: '/b', from: 2, via: 'backend' } }
    assert.deepEqual(history.get('/a', 3).rules(), [])
  })
})

describe('check of store failures', () => {
  it('accepts compaction errors only after a compaction', () => {
    const past = { start: '/a', revision: 1, via: 'backend' } as const
    const failed = (history: Story): Story => {
      const operation = history.pending('range', past, 'compacted').operations.at(-1)!
      Object.assign(operation, { end: operation.start + 0.5 })
      return history
    }
    assert.deepEqual(failed(story()).rules(), ['history'])
    assert.deepEqual(failed(story().done('compact', 2, null)).rules(), [])
  })

  it('never accepts reported corruption', () => {
    assert.deepEqual(story().pending('range', { start: '/a', via: 'backend' }, 'corrupt').rules(), ['corrupt'])
  })
})
