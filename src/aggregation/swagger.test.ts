import assert from 'node:assert/strict'
import { test } from 'node:test'

import { filterSwagger } from './swagger.ts'

const ref = (name: string): object => ({ $ref: `#/definitions/${name}` })

test('the filter of an OpenAPI v2 document keeps only paths of one group version and the definitions they reference', () => {
  const definitions = {
    A: { properties: { b: { items: ref('B') }, self: ref('A'), gone: ref('Gone') } },
    B: { type: 'object' },
    C: { type: 'object' },
  }
  const mine = { get: { responses: { '200': { schema: ref('A') } } } }
  const document = { paths: { '/apis/g/v1/x': mine, '/apis/g/v1beta1/x': { schema: ref('C') } }, definitions }
  assert.deepEqual(filterSwagger(document, '/apis/g/v1/'), {
    paths: { '/apis/g/v1/x': mine },
    definitions: { A: definitions.A, B: definitions.B },
  })
})

test('the filter of an OpenAPI v2 document returns undefined without such paths, and rejects malformed documents', () => {
  assert.equal(filterSwagger({ paths: { '/x': {} } }, '/apis/g/v1/'), undefined)
  for (const nonsense of [undefined, null, 7, [], {}, { paths: [] }, { paths: {}, definitions: 7 }]) {
    assert.throws(() => filterSwagger(nonsense, '/'), /has no paths/)
  }
})

test('the filter of an OpenAPI v2 document rejects a document that is nested too deeply', () => {
  const deep: unknown = JSON.parse(`${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`)
  assert.throws(() => filterSwagger({ paths: { '/x': deep } }, '/'), /nested too deeply/)
})
