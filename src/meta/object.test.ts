import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createSeededRandom } from '#lib/random.ts'

import {
  addFinalizer,
  controllerOf,
  controllerRef,
  copyInSteps,
  deepCopy,
  generateName,
  hasFinalizer,
  isBeingDeleted,
  isControlledBy,
  isOwnedBy,
  type KubeObject,
  keyOf,
  objectKey,
  removeFinalizer,
  semanticEqual,
  splitKey,
} from './object.ts'

describe('key of an object', () => {
  it('is namespace and name, or the name alone', () => {
    assert.equal(objectKey({ metadata: { namespace: 'a', name: 'b' } }), 'a/b')
    assert.equal(objectKey({ metadata: { name: 'b' } }), 'b')
    assert.equal(keyOf('', 'b'), 'b')
    assert.deepEqual(splitKey('a/b'), { namespace: 'a', name: 'b' })
    assert.deepEqual(splitKey('b'), { namespace: '', name: 'b' })
    assert.throws(() => splitKey('a/b/c'), { message: 'unexpected key format: "a/b/c"' })
  })
})

describe('owner references of an object', () => {
  const set: KubeObject = { metadata: { name: 'web', uid: 'u1' } }
  const ref = controllerRef(set, { group: 'apps', version: 'v1', kind: 'ReplicaSet' })
  const pod: KubeObject = { metadata: { ownerReferences: [{ ...ref, uid: 'u0', controller: false }, ref] } }

  it('identify the controller by UID', () => {
    assert.deepEqual(ref, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      name: 'web',
      uid: 'u1',
      controller: true,
      blockOwnerDeletion: true,
    })
    assert.equal(controllerOf(pod), ref)
    assert.ok(isControlledBy(pod, set))
    assert.ok(!isControlledBy(pod, { metadata: { name: 'web', uid: 'u2' } }))
    assert.ok(!isControlledBy(set, pod))
    assert.ok(isOwnedBy(pod, { metadata: { uid: 'u0' } }))
    assert.ok(!isOwnedBy(set, pod))
  })
})

describe('finalizers of an object', () => {
  it('are added and removed once', () => {
    const object: KubeObject = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }
    assert.ok(isBeingDeleted(object))
    assert.ok(addFinalizer(object, 'a'))
    assert.ok(!addFinalizer(object, 'a'))
    assert.ok(hasFinalizer(object, 'a'))
    assert.ok(removeFinalizer(object, 'a'))
    assert.ok(!removeFinalizer(object, 'a'))
    assert.ok(!('finalizers' in object.metadata))
  })
})

describe('generateName()', () => {
  it('truncates the prefix to 58 characters and adds five unambiguous ones', () => {
    const random = createSeededRandom(1)
    const name = generateName('x'.repeat(80), random)
    assert.match(name, /^x{58}[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    assert.match(generateName('web-', random), /^web-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
  })
})

describe('semanticEqual()', () => {
  const same: [unknown, unknown][] = [
    [undefined, null],
    [undefined, {}],
    [null, []],
    [{}, []],
    [{ a: undefined }, {}],
    [{ a: { b: [] } }, { a: { b: null } }],
    [{ a: { b: [] } }, { a: {} }],
    [{ a: 1, b: {} }, { a: 1 }],
    [5n, 5],
    [0, -0],
  ]
  const different: [unknown, unknown][] = [
    [0, undefined],
    ['', undefined],
    [false, null],
    [1, '1'],
    [[1], [1, 2]],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1 }, [1]],
    [{ a: [{}] }, { a: [] }],
    [{ a: { b: [] } }, {}],
    [2n ** 60n, 2n ** 60n + 1n],
    [1.5, 1n],
    [JSON.parse('{"__proto__":{"a":1}}'), {}],
    [{ toString: 1 }, {}],
  ]
  for (const [a, b] of same) it(`treats ${show(a)} and ${show(b)} as equal`, () => both(a, b, true))
  for (const [a, b] of different) it(`distinguishes ${show(a)} and ${show(b)}`, () => both(a, b, false))

  function both(a: unknown, b: unknown, expected: boolean): void {
    assert.equal(semanticEqual(a, b), expected)
    assert.equal(semanticEqual(b, a), expected)
  }
})

describe('deepCopy()', () => {
  it('returns an equal value that shares no objects with the original', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const copy = deepCopy(value)
        assert.deepEqual(copy, value)
        assert.ok(semanticEqual(copy, value))
        assert.ok(!sharesObjects(copy, value))
      }),
    )
  })

  it('returns the same in steps, and yields to the event loop within large values', () => {
    const map = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`k${n}`, '']))
    const value = { one: map, other: [map, { a: map }] }
    const steps = copyInSteps(value)
    let yields = 0
    let result = steps.next()
    for (; result.done !== true; result = steps.next()) yields++
    assert.deepEqual(result.value, value)
    assert.notEqual(result.value.one, map)
    assert.ok(yields >= 3, String(yields))
  })

  it('copies a key named __proto__', () => {
    const hostile: unknown = JSON.parse('{"__proto__":{"polluted":[1]},"constructor":{"prototype":{"polluted":1}}}')
    const copy = deepCopy(hostile) as object
    assert.equal(JSON.stringify(copy), JSON.stringify(hostile))
    assert.equal(Object.getPrototypeOf(copy), Object.prototype)
    assert.ok(!('polluted' in {}))
  })

  it('copies values of the maximum depth of decoders', () => {
    let value: unknown = 1
    for (let depth = 0; depth < 100_000; depth++) value = depth % 2 === 0 ? [value] : { a: value }
    assert.ok(semanticEqual(deepCopy(value), value))
  })
})

function sharesObjects(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || a === null || typeof b !== 'object' || b === null) return false
  return a === b || Object.keys(a).some((key) => sharesObjects((a as never)[key], (b as never)[key]))
}

function show(value: unknown): string {
  return typeof value === 'bigint' ? `${value}n` : (JSON.stringify(value) ?? 'nothing')
}
