import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { exampleType, field, list, map, scalar, struct } from '#kits/meta/example-kind.ts'

import type { KubeObject } from '../object.ts'
import { ItemFault } from './atom.ts'
import { compareTyped } from './compare.ts'
import { createdFields, emptyObject, NOT_OWNED } from './created-fields.ts'
import { difference, fieldPaths, recursiveDifference, union } from './field-set.ts'
import { encodeFieldsV1, type FieldsV1 } from './fields-v1.ts'

const name = fc.constantFrom('b', 'a', '__proto__', 'constructor', '', '\u{10000}', '\uffff')
const text = fc.constantFrom('x', 'y')
const free = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, fc.integer(), text, fc.dictionary(name, tie('value')), fc.array(tie('value'))),
})).value
const spec = fc.record(
  {
    replicas: fc.nat(3),
    image: fc.option(text),
    ports: fc.array(fc.record({ port: fc.nat(12), name: text }, { requiredKeys: ['port'] }), { maxLength: 4 }),
    tags: fc.array(fc.constantFrom('a', 'b', 'c')),
    steps: fc.array(text),
    selector: fc.dictionary(name, text),
    zones: fc.option(fc.dictionary(name, fc.record({ weight: fc.nat() }, { requiredKeys: [] }))),
    free,
    open: fc.dictionary(name, free),
    constructor: text,
  },
  { requiredKeys: [] },
)
const object = fc.record(
  {
    apiVersion: fc.constant('example.com/v1'),
    kind: fc.constant('Widget'),
    metadata: fc.record({ name: text, labels: fc.dictionary(name, text) }, { requiredKeys: [] }),
    spec,
    status: fc.constant({ phase: 'x' }),
  },
  { requiredKeys: ['metadata'] },
)

describe('createdFields() for managedFields', () => {
  it('returns the same as a comparison with the empty object', () => {
    const excluded = fieldPaths('status', 'spec.zones', 'metadata.labels.a')
    fc.assert(
      fc.property(object, fc.boolean(), (value, excluding) => {
        const { added, modified } = compareTyped(exampleType, emptyObject(exampleType), value)
        const all = difference(union(added, modified), NOT_OWNED)
        const expected = encodeFieldsV1(excluding ? recursiveDifference(all, excluded) : all)
        const created = createdFields(exampleType, value, excluding ? excluded : undefined)
        assert.equal(JSON.stringify(created ?? {}), JSON.stringify(expected))
      }),
    )
  })

  it('omits fields that Go writes for any object', () => {
    const always = { pointer: false, omitEmpty: false }
    const template = struct([field('containers', list(scalar('string')), { ...always, listType: 'set' })])
    const schema = struct([
      field('metadata', struct([field('labels', map(scalar('string')))]), always),
      field('template', template, always),
      field('rules', list(scalar('string')), { ...always, listType: 'atomic' }),
      field('count', scalar('int32'), always),
    ])
    const fieldsOf = (value: object): FieldsV1 | undefined => createdFields({ schema }, value as KubeObject)
    assert.equal(fieldsOf({ metadata: {}, template: { containers: null }, rules: null, count: 0 }), undefined)
    assert.deepEqual(fieldsOf({ metadata: { labels: {} }, template: { containers: ['a'] }, rules: [], count: 1 }), {
      'f:count': {},
      'f:metadata': { 'f:labels': {} },
      'f:rules': {},
      'f:template': { 'f:containers': { 'v:"a"': {} } },
    })
  })

  it('throws for a list item without keys', () => {
    assert.throws(() => createdFields(exampleType, { metadata: {}, spec: { tags: [[]] } } as KubeObject), ItemFault)
  })
})
