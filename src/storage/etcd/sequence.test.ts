import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import type { Event as EtcdEvent, KeyValue as EtcdKeyValue } from '#apis/wire/etcd.ts'

import type { WatchBatch } from '../backend.ts'
import { Sequence, type SequenceFault } from './sequence.ts'

const kv = (key: string, modRevision: number, createRevision = modRevision): EtcdKeyValue => ({
  key,
  createRevision,
  modRevision,
  version: 1,
  value: Buffer.from(`${key}@${modRevision}`),
  lease: 0,
})
const created = (key: string, revision: number): EtcdEvent => ({ type: 0, kv: kv(key, revision), prevKv: undefined })
const changed = (key: string, revision: number): EtcdEvent => ({
  type: 0,
  kv: kv(key, revision, 1),
  prevKv: kv(key, revision - 1, 1),
})
const deleted = (key: string, revision: number): EtcdEvent => ({
  type: 1,
  kv: { ...kv(key, revision), createRevision: 0, value: Buffer.alloc(0) },
  prevKv: kv(key, revision - 1, 1),
})
const whole = (...events: EtcdEvent[]): { events: EtcdEvent[]; fragment: boolean } => ({ events, fragment: false })
const part = (...events: EtcdEvent[]): { events: EtcdEvent[]; fragment: boolean } => ({ events, fragment: true })
const shape = (batches: readonly WatchBatch[]): string[] =>
  batches.map(({ revision, events }) => `${revision}:${events.map((event) => event.key).join('')}`)

describe('Sequence of etcd watch events', () => {
  it('emits whole revisions, several per response', () => {
    const sequence = new Sequence(5)
    const { batches, fault } = sequence.push(whole(created('a', 5), created('b', 5), created('c', 6)))
    assert.deepEqual([shape(batches), fault, sequence.next], [['5:ab', '6:c'], undefined, 7])
  })

  it('joins the fragments of a response, and emits completed revisions meanwhile', () => {
    const sequence = new Sequence(5)
    assert.deepEqual(shape(sequence.push(part(created('a', 5), created('b', 6))).batches), ['5:a'])
    assert.deepEqual(shape(sequence.push(part(created('c', 6))).batches), [])
    assert.deepEqual(shape(sequence.push(whole(created('d', 6), created('e', 7))).batches), ['6:bcd', '7:e'])
  })

  it('drops half a revision when the stream is reopened', () => {
    const sequence = new Sequence(5)
    sequence.push(part(created('a', 5)))
    sequence.reopen()
    assert.equal(sequence.next, 5)
    assert.deepEqual(shape(sequence.push(whole(created('a', 5), created('b', 5))).batches), ['5:ab'])
  })

  it('contains previous values, and for a deletion the deleted value', () => {
    const { batches } = new Sequence(5).push(whole(changed('a', 5), deleted('b', 5)))
    const [put, gone] = batches[0]!.events
    assert.deepEqual([put!.type, put!.createRevision, put!.previous?.modRevision], ['put', 1, 4])
    assert.deepEqual([gone!.type, gone!.createRevision, gone!.modRevision], ['delete', 1, 5])
    assert.equal(Buffer.from(gone!.value).toString(), 'b@4')
  })

  it('begins at revision 2, because no change has revision 1', () => {
    assert.equal(new Sequence(1).next, 2)
    assert.deepEqual(shape(new Sequence(1).push(whole(created('a', 2))).batches), ['2:a'])
  })

  it('skips old events that a lagging member sends before the first new revision', () => {
    const sequence = new Sequence(5)
    sequence.push(whole(created('a', 5)))
    sequence.reopen()
    const { batches, fault } = sequence.push(whole(created('x', 3), created('y', 4), created('a', 5), created('b', 6)))
    assert.deepEqual([shape(batches), fault], [['6:b'], undefined])
  })

  const faults: [string, SequenceFault, number, EtcdEvent[][]][] = [
    ['a missing revision', 'gap', 7, [[created('a', 5)], [created('b', 7)]]],
    ['missing revisions at the start', 'gap', 9, [[created('b', 9)]]],
    ['a late part of an emitted revision', 'torn', 6, [[created('a', 5)], [created('b', 5)]]],
    ['an old revision in the middle', 'older', 7, [[created('a', 5)], [created('b', 6)], [created('a', 4)]]],
    ['a change without the previous value', 'bare', 6, [[{ ...changed('a', 5), prevKv: undefined }]]],
    ['a deletion without the previous value', 'bare', 6, [[{ ...deleted('a', 5), prevKv: undefined }]]],
  ]
  for (const [what, fault, resumeAt, answers] of faults) {
    it(`detects ${what}`, () => {
      const sequence = new Sequence(5)
      const found = answers.map((events) => sequence.push(whole(...events)).fault)
      assert.deepEqual([found.at(-1)?.fault, found.at(-1)?.resumeAt], [fault, resumeAt])
      assert.ok(found.slice(0, -1).every((one) => one === undefined))
    })
  }

  it('skips a repetition of the last revision', () => {
    const sequence = new Sequence(5)
    sequence.push(whole(created('a', 5), created('b', 5)))
    assert.deepEqual(sequence.push(whole(created('b', 5))), { batches: [], fault: undefined })
  })

  it('emits everything before a fault, and continues at that position', () => {
    const sequence = new Sequence(5)
    const { batches, fault } = sequence.push(whole(created('a', 5), created('b', 6), created('c', 9)))
    assert.deepEqual([shape(batches), fault?.fault, sequence.next], [['5:a', '6:b'], 'gap', 7])
  })

  it('emits the same revisions for any split into responses, fragments and streams', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 20 })
    const cuts = fc.array(fc.record({ length: fc.integer({ min: 1, max: 5 }), reopen: fc.boolean() }), { minLength: 1 })
    fc.assert(
      fc.property(sizes, cuts, (sizes, cuts) => {
        const all = sizes.flatMap((size, n) => Array.from({ length: size }, (_, key) => created(`k${key}`, n + 2)))
        const sequence = new Sequence(2)
        const out: WatchBatch[] = []
        let at = 0
        for (let n = 0; at < all.length; n++) {
          const { length, reopen } = cuts[n % cuts.length]!
          const events = all.slice(at, at + length)
          at += length
          // etcd sets `fragment` whenever it splits inside a revision.
          const isCut = at < all.length && all[at]!.kv!.modRevision === events.at(-1)!.kv!.modRevision
          const { batches, fault } = sequence.push({ events, fragment: isCut })
          assert.equal(fault, undefined)
          out.push(...batches)
          if (!reopen) continue
          sequence.reopen()
          at = all.findIndex((event) => Number(event.kv!.modRevision) >= sequence.next)
          if (at < 0) break
          cuts = cuts.map((cut) => ({ ...cut, reopen: false }))
        }
        assert.deepEqual(
          out.map(({ revision, events }) => [revision, events.length]),
          sizes.map((size, n) => [n + 2, size]),
        )
      }),
    )
  })
})
