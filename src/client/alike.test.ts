import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { Siblings, sharing } from './alike.ts'

const pod = (name: string, owner: string, image: string): { metadata: object; spec: { containers: object[] } } => ({
  metadata: { name, ownerReferences: [{ uid: owner, controller: true }] },
  spec: { containers: [{ name: 'c', image, env: [{ name: 'A', value: '1' }] }] },
})

describe('what is alike', () => {
  it('is held once, however deep, and the rest stays as it is', () => {
    const [one, other] = [pod('one', 'u', 'i:1'), pod('other', 'u', 'i:2')]
    const kept = sharing(other, one)
    assert.equal(kept, other)
    assert.deepEqual(kept, pod('other', 'u', 'i:2'))
    assert.equal((kept.spec.containers[0] as { env: object }).env, (one.spec.containers[0] as { env: object }).env)
    assert.equal(sharing(pod('one', 'u', 'i:1'), one), one)
  })

  it('says the same as before, whatever it is shared with, which is never changed', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (fresh, known) => {
        const [before, others] = [structuredClone(fresh), structuredClone(known)]
        assert.deepEqual(sharing(fresh, known), before)
        assert.deepEqual(known, others)
      }),
    )
  })

  it('is looked for in what the object was, then among those of the same owner, as long as they are there', () => {
    const siblings = new Siblings<ReturnType<typeof pod>>()
    const [first, stranger] = [pod('a', 'one', 'i:1'), pod('x', 'two', 'i:1')]
    siblings.take(first, undefined)
    siblings.take(stranger, undefined)
    assert.equal(siblings.take(pod('b', 'one', 'i:1'), undefined).spec, first.spec)
    const next = siblings.take(pod('x', 'two', 'i:2'), stranger)
    siblings.forget(next)
    assert.notEqual(siblings.take(pod('y', 'two', 'i:2'), undefined).spec, next.spec)
  })
})
