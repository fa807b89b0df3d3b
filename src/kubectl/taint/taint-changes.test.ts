import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Taint } from '#apis/core/v1.ts'

import { changedTaints, checkContradictions, parseTaints } from './taint-changes.ts'

describe('arguments of kubectl taint', () => {
  it('consist of key, value and effect', () => {
    assert.deepEqual(parseTaints(['a=b:NoSchedule', 'c:NoExecute-', 'd-']), {
      added: [{ key: 'a', value: 'b', effect: 'NoSchedule' }],
      removed: [
        { key: 'c', value: '', effect: 'NoExecute' },
        { key: 'd', value: '', effect: '' },
      ],
    })
  })

  for (const [specs, text] of [
    [['a=b'], /invalid taint spec: a=b/],
    [['a=b:Fly'], /invalid taint effect: Fly, unsupported taint effect/],
    [['a=b=c:NoSchedule'], /invalid taint spec: a=b=c:NoSchedule/],
    [['a:NoSchedule', 'a=b:NoSchedule'], /duplicated taints with the same key and effect: \{a b NoSchedule <nil>\}/],
  ] as const) {
    it(`are refused: ${specs.join(' ')}`, () => assert.throws(() => parseTaints(specs), text))
  }

  it('may not set and remove the same taint', () => {
    assert.throws(
      () => checkContradictions(parseTaints(['a=b:NoSchedule', 'a-'])),
      /can not both modify and remove the following taint\(s\) in the same command: a=/,
    )
  })

  const had: Taint[] = [{ key: 'a', value: '1', effect: 'NoSchedule' }]

  it('replace an existing taint only with --overwrite', () => {
    const changes = parseTaints(['a=2:NoSchedule'])
    assert.throws(() => changedTaints({ name: 'n', taints: had }, changes, false), /node n already has a taint\(s\)/)
    const { taints, operation } = changedTaints({ name: 'n', taints: had }, changes, true)
    assert.deepEqual([taints, operation], [[{ key: 'a', value: '2', effect: 'NoSchedule' }], 'modified'])
  })

  it('determine whether the output is tainted, untainted or modified', () => {
    const done = (...specs: string[]): string =>
      changedTaints({ name: 'n', taints: had }, parseTaints(specs), false).operation
    assert.equal(done('b:NoExecute'), 'tainted')
    assert.equal(done('a-'), 'untainted')
    assert.equal(done('b:NoExecute', 'c:NoExecute', 'a-'), 'modified')
    assert.throws(() => done('x:NoExecute-'), /taint "x:NoExecute" not found/)
  })
})
