import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import {
  andFields,
  escapeFieldValue,
  everyField,
  fieldEquals,
  type FieldRequirement,
  fieldSelectorText,
  isEveryField,
  knownFields,
  matchesFields,
  metadataFields,
  parseFieldSelector,
  requiredField,
} from './fields.ts'

describe('parseFieldSelector()', () => {
  for (const [text, canonical] of [
    ['', ''],
    [',,', ''],
    ['a=b', 'a=b'],
    ['a==b', 'a=b'],
    ['b!=c,a=b', 'a=b,b!=c'],
    ['a=', 'a='],
    ['=', ''],
    ['a=x\\,y\\=z\\\\', 'a=x\\,y\\=z\\\\'],
    ['metadata.name=web', 'metadata.name=web'],
  ] as const) {
    it(`parses "${text}"`, () => assert.equal(fieldSelectorText(parseFieldSelector(text)), canonical))
  }

  for (const [text, message] of [
    ['a', "invalid selector: 'a'; can't understand 'a'"],
    ['a=b,c', "invalid selector: 'a=b,c'; can't understand 'c'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
    ['a=\\x', 'invalid field selector: invalid escape sequence: \\x'],
    ['a=\\', 'invalid field selector: invalid escape sequence: \\'],
  ] as const) {
    it(`rejects "${text}"`, () => assert.throws(() => parseFieldSelector(text), { message }))
  }

  it('survives printing and parsing', () => {
    const value = fc.string({ unit: fc.constantFrom('a', 'é', ',', '=', '\\', '!', '\u{1F600}') })
    const one = fc.record({ field: fc.constantFrom('a', 'b.c'), operator: fc.constantFrom('=', '!='), value })
    fc.assert(
      fc.property(fc.array(one), (list) => {
        const requirements = list as FieldRequirement[]
        const { requirements: read } = parseFieldSelector(fieldSelectorText({ requirements }))
        const sorted = (all: readonly FieldRequirement[]): string[] => all.map((each) => JSON.stringify(each)).sort()
        assert.deepEqual(sorted(read), sorted(requirements))
      }),
    )
  })
})

describe('field selector rules of a kind', () => {
  it('define the fields that can be selected', () => {
    assert.throws(() => parseFieldSelector('x=1', metadataFields), {
      message: '"x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    })
    const pods = knownFields(['metadata.name', 'spec.nodeName'])
    assert.equal(fieldSelectorText(parseFieldSelector('spec.nodeName=n', pods)), 'spec.nodeName=n')
    assert.throws(() => parseFieldSelector('x=1', pods), { message: 'field label not supported: x' })
    const jobs = knownFields([], (field) => `field label "${field}" not supported for Job`)
    assert.throws(() => parseFieldSelector('x=1', jobs), { message: 'field label "x" not supported for Job' })
  })

  it('may rename and drop fields', () => {
    const renamed = parseFieldSelector('spec.host=n,b!=2', (field, value) =>
      field === 'spec.host' ? { field: 'spec.nodeName', value } : undefined,
    )
    assert.deepEqual(renamed, fieldEquals('spec.nodeName', 'n'))
  })
})

describe('matchesFields()', () => {
  const get = (field: string): string => ({ a: '1', b: '' })[field] ?? ''

  it('compares values as text, and treats an unknown field as empty', () => {
    for (const [text, expected] of [
      ['', true],
      ['a=1', true],
      ['a!=1', false],
      ['b=', true],
      ['c=', true],
      ['c!=x', true],
      ['a=1,c=x', false],
    ] as const) {
      assert.equal(matchesFields(parseFieldSelector(text), get), expected, text)
    }
  })

  it('returns the value that a selector requires for a field', () => {
    const selector = andFields(fieldEquals('metadata.name', 'x'), parseFieldSelector('a!=1'))
    assert.equal(requiredField(selector, 'metadata.name'), 'x')
    assert.equal(requiredField(selector, 'a'), undefined)
    assert.ok(isEveryField(everyField) && !isEveryField(selector))
    assert.equal(escapeFieldValue('a,b=c\\'), 'a\\,b\\=c\\\\')
  })
})
