import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { parseJson, stringifyJson } from './json.ts'
import { applyMergePatch, createMergePatch } from './merge-patch.ts'
import type { JsonObject, JsonValue } from './value.ts'

/** The examples of RFC 7386 and what evanphx/json-patch v4.13 adds to them. */
const APPLIED: readonly (readonly [document: string, patch: string, result: string])[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['{"e":null}', '{"a":1}', '{"a":1,"e":null}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ['{}', '{"a":[{"b":null},null]}', '{"a":[{},null]}'],
  ['{"a":[1]}', '{"a":[{"b":null}]}', '{"a":[{}]}'],
  ['{"a":{"x":1}}', '{"a":[{"b":null}]}', '{"a":[{"b":null}]}'],
  [
    '{"a":{"x":1}}',
    '{"__proto__":{"x":2},"a":{"__proto__":{"y":3}}}',
    '{"__proto__":{"x":2},"a":{"__proto__":{"y":3},"x":1}}',
  ],
  ['{"__proto__":{"a":1}}', '{"__proto__":null}', '{}'],
]

const value = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<JsonValue>(1, 'x', false),
    fc.array(fc.constantFrom<JsonValue>(1, 'y'), { maxLength: 2 }),
    tie('object'),
  ),
  object: fc
    .array(fc.tuple(fc.constantFrom('a', 'b', 'c', '__proto__'), tie('value')), { maxLength: 4 })
    .map((members) => Object.fromEntries(members)),
})).object

describe('applyMergePatch', () => {
  it('agrees with the examples of the RFC and with the library that Kubernetes uses', () => {
    for (const [document, patch, result] of APPLIED) {
      const before = parseJson(document)
      assert.equal(stringifyJson(applyMergePatch(before, parseJson(patch)), { sortedKeys: true }), result, patch)
      assert.deepEqual(before, parseJson(document))
    }
    assert.equal(({} as Record<string, unknown>).x, undefined)
  })

  it('changes nothing if the patch is empty or already applied', () => {
    fc.assert(
      fc.property(value, value, (document, patch) => {
        const once = applyMergePatch(document, patch)
        assert.deepEqual(applyMergePatch(once, patch), once)
        assert.deepEqual(applyMergePatch(document, {}), document)
      }),
    )
  })

  it('rejects a patch that is nested too deeply', () => {
    const deep = parseJson(`${'{"a":'.repeat(9_999)}1${'}'.repeat(9_999)}`)
    assert.throws(() => applyMergePatch({}, deep), { code: 'depth' })
    assert.throws(() => applyMergePatch(deep, deep), { code: 'depth' })
  })
})

describe('createMergePatch', () => {
  it('creates the minimal patch from one value to the other', () => {
    fc.assert(
      fc.property(value, value, (original, modified) => {
        const patch = createMergePatch(original, modified)
        assert.deepEqual(applyMergePatch(original, patch), modified)
        assert.deepEqual(createMergePatch(modified, modified), {})
      }),
    )
    assert.deepEqual(createMergePatch({ a: 1, b: { c: [1], d: 2 } }, { b: { c: [1, 2], d: 2 } }), {
      a: null,
      b: { c: [1, 2] },
    })
  })
})
