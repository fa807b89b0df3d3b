import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { InternPool, shareEqualParts } from './interning.ts'

const pod = (name: string, owner: string, image: string): { metadata: object; spec: { containers: object[] } } => ({
  metadata: { name, ownerReferences: [{ uid: owner, controller: true }] },
  spec: { containers: [{ name: 'c', image, env: [{ name: 'A', value: '1' }] }] },
})

describe('interning of decoded objects', () => {
  it('shares equal parts with another object at any depth', () => {
    const [one, other] = [pod('one', 'u', 'i:1'), pod('other', 'u', 'i:2')]
    const kept = shareEqualParts(other, one)
    assert.equal(kept, other)
    assert.deepEqual(kept, pod('other', 'u', 'i:2'))
    assert.equal((kept.spec.containers[0] as { env: object }).env, (one.spec.containers[0] as { env: object }).env)
    assert.equal(shareEqualParts(pod('one', 'u', 'i:1'), one), one)
  })

  it('keeps the value of the new object and never changes the previous one', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (fresh, known) => {
        const [before, others] = [structuredClone(fresh), structuredClone(known)]
        assert.deepEqual(shareEqualParts(fresh, known), before)
        assert.deepEqual(known, others)
      }),
    )
  })

  it('shares parts with the previous version, or with an object of the same owner while that one exists', () => {
    const pool = new InternPool<ReturnType<typeof pod>>()
    const [first, stranger] = [pod('a', 'one', 'i:1'), pod('x', 'two', 'i:1')]
    pool.intern(first, undefined)
    pool.intern(stranger, undefined)
    assert.equal(pool.intern(pod('b', 'one', 'i:1'), undefined).spec, first.spec)
    const next = pool.intern(pod('x', 'two', 'i:2'), stranger)
    pool.forget(next)
    assert.notEqual(pool.intern(pod('y', 'two', 'i:2'), undefined).spec, next.spec)
  })
})
