import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { CommitTimes } from './commit-times.ts'

describe('CommitTimes', () => {
  it('has an entry for the first commit of each second', () => {
    const times = new CommitTimes()
    const stored = [
      [1, 1_000_000],
      [2, 1_000_400],
      [4, 1_000_999],
      [5, 1_001_000],
      [9, 1_003_500],
    ].map(([revision = 0, atMs = 0]) => times.note(revision, atMs))
    assert.deepEqual(stored, [1_000_000, undefined, undefined, 1_001_000, 1_003_500])
    assert.deepEqual(times.entries, [
      [1, 1_000_000],
      [5, 1_001_000],
      [9, 1_003_500],
    ])
  })

  it('does not know times before the first entry', () => {
    const times = new CommitTimes([[5, 1_000_000]])
    assert.deepEqual([times.timeOf(4), times.timeOf(5)], [undefined, 1_000_000])
    assert.deepEqual([times.revisionAt(999_999, 9), times.revisionAt(1_000_000, 9)], [undefined, 9])
  })

  it('keeps the time while a clock is set back', () => {
    const times = new CommitTimes([[5, 1_000_000]])
    assert.equal(times.note(6, 400_000), undefined)
    assert.equal(times.timeOf(6), 1_000_000)
    assert.equal(times.note(7, 1_001_000), 1_001_000)
  })

  it('answers as a list of all commits does', () => {
    const steps = fc.array(
      fc.record({ waitMs: fc.integer({ min: -3000, max: 4000 }), skip: fc.integer({ min: 1, max: 3 }) }),
    )
    fc.assert(
      fc.property(steps, fc.nat(), fc.nat(), (commits, floor, probe) => {
        const times = new CommitTimes()
        const all: [revision: number, second: number][] = []
        let [revision, clockMs, second] = [0, 1_000_000, 0]
        for (const { waitMs, skip } of commits) {
          revision += skip
          clockMs += waitMs
          second = Math.max(second, Math.floor(clockMs / 1000))
          times.note(revision, clockMs)
          all.push([revision, second])
        }
        const kept = revision === 0 ? 0 : floor % (revision + 1)
        times.forget(kept)
        const known = all.findLast(([at]) => at <= kept)?.[0] ?? 0
        for (const [at, its] of all.filter(([at]) => at >= known)) {
          assert.equal(Math.floor((times.timeOf(at) ?? 0) / 1000), its)
        }
        const targetSecond = 990 + (probe % 60)
        const before = all.filter(([, its]) => its <= targetSecond)
        const next = all.find(([, its]) => its > targetSecond)
        const found = times.revisionAt(targetSecond * 1000, revision)
        if (found !== undefined) assert.equal(found, next === undefined ? revision : next[0] - 1)
        else assert.ok((before.at(-1)?.[0] ?? 0) <= kept)
      }),
    )
  })
})
