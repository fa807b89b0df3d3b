import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { EMPTY_SET, equalSets, setOf } from './field-set.ts'
import { decodeFieldsV1, encodeFieldsV1 } from './fields-v1.ts'
import { keyElement, valueElement } from './path-element.ts'

const name = fc.oneof(fc.constantFrom('__proto__', 'constructor', '', '.', 'a'), fc.string({ unit: 'grapheme' }))
const value = fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean())
const element = fc.oneof(
  name.map((text) => `f:${text}`),
  fc.dictionary(name, value, { minKeys: 1, maxKeys: 3 }).map((keys) => keyElement(Object.entries(keys))),
  value.map(valueElement),
  fc.nat().map((index) => `i:${index}`),
)
const set = fc.array(fc.array(element, { minLength: 1, maxLength: 4 }), { maxLength: 8 }).map((each) => setOf(...each))

describe('FieldsV1 of a set of field paths', () => {
  it('round-trips, also through JSON text', () => {
    fc.assert(
      fc.property(set, (fields) => {
        const text = JSON.stringify(encodeFieldsV1(fields))
        const decoded = decodeFieldsV1(JSON.parse(text))
        assert.ok(equalSets(decoded, fields))
        assert.equal(JSON.stringify(encodeFieldsV1(decoded)), text)
      }),
    )
  })

  it('marks a path that has fields below it with a dot', () => {
    const fields = setOf(['f:a'], ['f:a', 'f:b'], ['f:c', 'f:d'])
    assert.deepEqual(encodeFieldsV1(fields), { 'f:a': { '.': {}, 'f:b': {} }, 'f:c': { 'f:d': {} } })
  })

  it('drops unknown path elements of later versions', () => {
    const fields = decodeFieldsV1({ 'x:y': { 'f:a': {} }, 'f:b': { 'x:y': {} }, 'f:c': null, 'f:d': { '.': {} } })
    assert.deepEqual(encodeFieldsV1(fields), { 'f:b': {}, 'f:c': {}, 'f:d': {} })
  })

  it('identifies a list item by its keys, regardless of their notation', () => {
    const fields = decodeFieldsV1({ 'k:{"b":1, "a":2.0}': {} })
    assert.deepEqual(encodeFieldsV1(fields), { 'k:{"a":2,"b":1}': {} })
  })

  for (const bad of [1, 'x', [], { a: {} }, { 'f:a': 1 }, { 'f:a': { 'k:1': {} } }, { f: {} }]) {
    it(`is rejected if it is ${JSON.stringify(bad)}`, () => assert.throws(() => decodeFieldsV1(bad)))
  }

  it('is empty if it is absent', () => {
    assert.equal(decodeFieldsV1({}), EMPTY_SET)
    assert.equal(decodeFieldsV1(null), EMPTY_SET)
    assert.equal(decodeFieldsV1({ '.': {} }), EMPTY_SET)
  })
})
