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
    const metadata = fc.array(fc.tuple(fc.oneof(fc.constant('managedFields'), fc.string()), fc.jsonValue()))
    fc.assert(
      fc.property(metadata, fc.jsonValue(), (members, managedFields) => {
        const one = {
          ...Object.fromEntries(members),
          ...(members.length % 2 === 0 && { managedFields: [managedFields] }),
        }
        const { managedFields: omitted, ...rest } = one as Record<string, never>
        const isKept = omitted !== undefined && (typeof omitted !== 'object' || omitted === null)
        const text = metadataText(encodeJson({ metadata: one }).slice(1), { omitsManagedFields: true })
        assert.equal(text, encodeJson({ metadata: isKept ? one : rest }).slice(1, -1))
      }),
    )
  })

  for (const text of ['', '"spec":{}}', '"metadata":null}', '"metadata":{"a":"', '"metadata":{"a":"\\"}']) {
    it(`returns undefined for ${JSON.stringify(text)}`, () => assert.equal(metadataText(text), undefined))
  }
})
