import assert from 'node:assert/strict'
import { test } from 'node:test'

import { mergeSwaggers } from './merge-v2.ts'

const ref = (name: string): object => ({ $ref: `#/definitions/${name}` })
const own = {
  swagger: '2.0',
  paths: { '/a': { get: {} } },
  definitions: { Meta: { type: 'object', description: 'ours' }, Same: { type: 'string' } },
}

test('the merge of OpenAPI v2 documents adds paths and definitions of aggregated servers', () => {
  const other = {
    paths: { '/a': {}, '/b': { schema: ref('B') } },
    definitions: { B: { type: 'object' }, Same: { type: 'string' } },
  }
  assert.deepEqual(mergeSwaggers(own, [other]), {
    swagger: '2.0',
    paths: { '/a': { get: {} }, '/b': { schema: ref('B') } },
    definitions: { B: { type: 'object' }, ...own.definitions },
  })
})

test('the merge of OpenAPI v2 documents renames a conflicting definition and its references', () => {
  const theirs = { Meta: { type: 'object', description: 'theirs' }, B: { properties: { metadata: ref('Meta') } } }
  const other = { paths: { '/b': { schema: ref('B') } }, definitions: theirs }
  const mine = { ...own, definitions: { ...own.definitions, B: { properties: { metadata: ref('Meta') } } } }
  const { paths, definitions } = mergeSwaggers(mine, [other, other])
  assert.deepEqual(Object.keys(definitions as object), ['B', 'B_v2', 'Meta', 'Meta_v2', 'Same'])
  assert.deepEqual((definitions as Record<string, unknown>)['B_v2'], { properties: { metadata: ref('Meta_v2') } })
  assert.deepEqual((paths as Record<string, unknown>)['/b'], { schema: ref('B_v2') })
})

test('the merge of OpenAPI v2 documents joins the group-version-kinds of equal definitions', () => {
  const kinds = (...groups: readonly string[]): object => ({
    'x-kubernetes-group-version-kind': groups.map((group) => ({ group, version: 'v1', kind: 'DeleteOptions' })),
  })
  const mine = { ...own, definitions: { D: { type: 'object', ...kinds('', 'apps') } } }
  const other = { paths: {}, definitions: { D: { type: 'object', ...kinds('', 'agg.io') } } }
  assert.deepEqual(mergeSwaggers(mine, [other])['definitions'], {
    D: { type: 'object', ...kinds('', 'apps', 'agg.io') },
  })
})

test('the merge of OpenAPI v2 documents ignores malformed documents', () => {
  assert.deepEqual(mergeSwaggers(own, [{ paths: 7, definitions: [] }, {}]), own)
})
