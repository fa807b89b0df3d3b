/** Tests that the metadata of an object is cut out as it was encoded. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { encodeJson } from './encode-json.ts'
import { metadataText } from './metadata-text.ts'

describe('metadataText()', () => {
  it('returns the metadata of any object', () => {
    const metadata = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue() as fc.Arbitrary<never>)
    fc.assert(
      fc.property(metadata, fc.jsonValue(), (one, spec) => {
        const text = encodeJson({ metadata: one, spec })
        const expected = encodeJson({ metadata: one })
        assert.equal(metadataText(text.slice(1)), expected.slice(1, -1))
      }),
    )
  })

  it('leaves out the managed fields of the object, and no label or annotation of this name', () => {
    const members = fc.dictionary(fc.string(), fc.jsonValue() as fc.Arbitrary<never>)
    fc.assert(
      fc.property(members, members, fc.array(fc.jsonValue()), (before, after, managedFields) => {
        const labels = { managedFields: 'a' }
        const text = encodeJson({ metadata: { ...before, labels, ...after, managedFields, x: { managedFields } } })
        const expected = encodeJson({ metadata: { ...before, labels, ...after, x: { managedFields } } })
        assert.equal(metadataText(text.slice(1), { omitsManagedFields: true }), expected.slice(1, -1))
      }),
    )
  })

  for (const text of ['', '"spec":{}}', '"metadata":null}', '"metadata":{"a":"', '"metadata":{"a":"\\"}']) {
    it(`returns undefined for ${JSON.stringify(text)}`, () => assert.equal(metadataText(text), undefined))
  }
})
