import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { pod } from '#kits/meta/example-schema.ts'

import type { JsonMap } from './json-map.ts'
import { StrategicMergeError, type StrategicMergeErrorCode } from './strategic-merge-error.ts'
import { strategicMerge } from './strategic-merge.ts'

type Case = readonly [what: string, original: JsonMap, patch: JsonMap, result: JsonMap]

const abc = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]

const MERGES: readonly Case[] = [
  ['changes nothing with an empty patch', { host: 'a' }, {}, { host: 'a' }],
  ['sets values', { host: 'a' }, { host: 'b' }, { host: 'b' }],
  ['deletes a field with null', { host: 'a', labels: { x: '1' } }, { host: null, raw: null }, { labels: { x: '1' } }],
  [
    'merges maps key by key',
    { labels: { a: '1', b: '2' } },
    { labels: { b: '3', c: '4' } },
    { labels: { a: '1', b: '3', c: '4' } },
  ],
  ['deletes a key of a map with null', { labels: { a: '1', b: '2' } }, { labels: { a: null } }, { labels: { b: '2' } }],
  ['replaces a value of another type', { labels: { a: '1' } }, { labels: ['x'] }, { labels: ['x'] }],
  [
    'replaces lists without patchStrategy',
    { tolerations: abc },
    { tolerations: [{ name: 'x' }] },
    { tolerations: [{ name: 'x' }] },
  ],
  [
    'replaces fields with patchStrategy replace',
    { whole: { name: 'a', value: 'b' } },
    { whole: { name: 'c' } },
    { whole: { name: 'c' } },
  ],
  [
    'merges lists by merge key, elements of the patch first',
    { containers: [{ name: 'a', image: '1' }, { name: 'b' }] },
    { containers: [{ name: 'c' }, { name: 'a', command: ['x'] }] },
    { containers: [{ name: 'c' }, { name: 'a', image: '1', command: ['x'] }, { name: 'b' }] },
  ],
  [
    'merges nested lists',
    { containers: [{ name: 'a', env: [{ name: 'A', value: '1' }] }] },
    { containers: [{ name: 'a', env: [{ name: 'A', value: null }, { name: 'B' }] }] },
    { containers: [{ name: 'a', env: [{ name: 'A' }, { name: 'B' }] }] },
  ],
  [
    'merges lists of scalars as sets',
    { finalizers: ['a', 'b'] },
    { finalizers: ['c', 'b'] },
    { finalizers: ['c', 'a', 'b'] },
  ],
  [
    'replaces a map with $patch: replace',
    { labels: { a: '1' } },
    { labels: { $patch: 'replace', b: '2' } },
    { labels: { b: '2' } },
  ],
  [
    'empties a map with $patch: delete',
    { labels: { a: '1' } },
    { labels: { $patch: 'delete', b: '2' } },
    { labels: {} },
  ],
  [
    'replaces the whole object with $patch at the root',
    { host: 'a' },
    { $patch: 'replace', labels: {} },
    { labels: {} },
  ],
  [
    'removes list elements with $patch: delete by merge key',
    { containers: abc },
    { containers: [{ $patch: 'delete', name: 'b' }] },
    { containers: [abc[0], abc[2]] },
  ],
  [
    'replaces a list with $patch: replace',
    { containers: abc },
    { containers: [{ name: 'x' }, { $patch: 'replace' }] },
    { containers: [{ name: 'x' }] },
  ],
  ['drops a directive for a missing field', {}, { labels: { $patch: 'delete' }, host: 'a' }, { host: 'a' }],
  [
    'drops nulls in new values, except from lists',
    {},
    { labels: { a: null, b: '1' }, tolerations: [null, { name: null }] },
    { labels: { b: '1' }, tolerations: [null, {}] },
  ],
  [
    'drops keys that $retainKeys does not name',
    { strategy: { type: 'Rolling', rolling: { name: 'x' } } },
    { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
    { strategy: { type: 'Recreate' } },
  ],
  [
    'keeps nulls and directives despite $retainKeys',
    { strategy: { type: 'a', rolling: {} } },
    { strategy: { $retainKeys: ['type'], rolling: null } },
    { strategy: { type: 'a' } },
  ],
  [
    'removes values with $deleteFromPrimitiveList',
    { finalizers: ['a', 'b', 'c'] },
    { '$deleteFromPrimitiveList/finalizers': ['a', 'c', 'x'] },
    { finalizers: ['b'] },
  ],
  ['ignores $deleteFromPrimitiveList for a missing list', {}, { '$deleteFromPrimitiveList/finalizers': ['a'] }, {}],
  [
    'orders scalars with $setElementOrder',
    { finalizers: ['a', 'b', 'c'] },
    { '$setElementOrder/finalizers': ['c', 'b', 'a'] },
    { finalizers: ['c', 'b', 'a'] },
  ],
  [
    'orders maps with $setElementOrder, and keeps the position of elements that only the server has',
    { containers: [{ name: 'x' }, ...abc, { name: 'y' }] },
    {
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'new' }, { name: 'a' }, { name: 'b' }],
      containers: [{ name: 'new' }],
    },
    { containers: [{ name: 'x' }, { name: 'c' }, { name: 'new' }, { name: 'a' }, { name: 'b' }, { name: 'y' }] },
  ],
  ['ignores $setElementOrder for a missing list', {}, { '$setElementOrder/containers': [{ name: 'a' }] }, {}],
  [
    'adds new elements unchanged',
    { containers: [] },
    { containers: [{ name: 'a', image: null }] },
    { containers: [{ name: 'a', image: null }] },
  ],
]

const FAILURES: readonly [
  what: string,
  original: JsonMap,
  patch: JsonMap,
  code: StrategicMergeErrorCode,
  message: string,
][] = [
  ['$retainKeys that is not a list', {}, { $retainKeys: 'a' }, 'bad-format', 'invalid patch format of retainKeys'],
  [
    'a field that $retainKeys does not name',
    {},
    { $retainKeys: ['a'], host: 'x' },
    'bad-format',
    'invalid patch format of retainKeys',
  ],
  [
    'a directive without a field',
    {},
    { $deleteFromPrimitiveList: [] },
    'bad-format',
    'invalid patch format of primitive list',
  ],
  [
    '$setElementOrder without a field name',
    {},
    { $setElementOrder: [] },
    'bad-format',
    'invalid patch format of setElementOrder list',
  ],
  [
    'lists of lists',
    { finalizers: [['a']] },
    { finalizers: [['b']] },
    'unprocessable',
    'lists of lists are not supported',
  ],
  [
    '$setElementOrder that is not a list',
    {},
    { '$setElementOrder/finalizers': null },
    'failed',
    'expected a []interface {}, but received a %!s(<nil>)',
  ],
  [
    '$setElementOrder for a field that is not a list',
    { finalizers: 1 },
    { '$setElementOrder/finalizers': ['a'] },
    'failed',
    'expected a []interface {}, but received a int64',
  ],
  [
    '$setElementOrder whose original and patch have no elements',
    { finalizers: [] },
    { '$setElementOrder/finalizers': ['a'] },
    'failed',
    'no elements in any of the given slices',
  ],
  [
    'a list in another order than its $setElementOrder',
    {},
    { finalizers: ['a', 'b'], '$setElementOrder/finalizers': ['b', 'a'] },
    'failed',
    "The order in patch list:\n[a b]\n doesn't match $setElementOrder list:\n[b a]\n",
  ],
  [
    'a patch element without merge key',
    { containers: abc },
    { containers: [{ image: 'x' }] },
    'failed',
    'map: map[image:x] does not contain declared merge key: name',
  ],
  [
    'a server element without merge key',
    { containers: [{}] },
    { containers: [{ name: 'x' }] },
    'failed',
    'map: map[] does not contain declared merge key: name',
  ],
  [
    'a deletion without merge key',
    { containers: abc },
    { containers: [{ $patch: 'delete' }] },
    'failed',
    'map: map[$patch:delete] does not contain declared merge key: name',
  ],
  [
    'elements of several types',
    { containers: abc },
    { containers: ['x'] },
    'failed',
    'list element types are not identical: [[map[name:a] map[name:b] map[name:c]] [x]]',
  ],
  [
    '$patch merge in a list',
    { containers: abc },
    { containers: [{ $patch: 'merge', name: 'a' }] },
    'failed',
    'merging lists cannot yet be specified in the patch',
  ],
  [
    'an unknown $patch in a list',
    { containers: abc },
    { containers: [{ $patch: 'zap', name: 'a' }] },
    'failed',
    'unknown patch type: zap in map: map[$patch:zap name:a]',
  ],
  [
    'an unknown $patch in a map',
    { labels: { a: '1' } },
    { labels: { $patch: 1 } },
    'failed',
    'unknown patch type: %!s(int64=1) in map: map[$patch:1]',
  ],
  [
    'a merge of maps without merge key',
    { keyless: abc },
    { keyless: [{ name: 'a' }] },
    'failed',
    'cannot merge lists without merge key for struct',
  ],
  [
    'a merge into an unknown field',
    { zork: {} },
    { zork: { a: 1 } },
    'failed',
    'unable to find api field in struct PodSpec for the json field "zork"',
  ],
  [
    'a merge into raw JSON',
    { raw: { a: {} } },
    { raw: { a: { b: 1 } } },
    'failed',
    'unable to find api field in struct RawExtension for the json field "a"',
  ],
  [
    'a merge into a map of maps',
    { nested: { a: { b: '1' } } },
    { nested: { a: { c: '1' } } },
    'failed',
    'merging an object in json but data type is not struct, instead is: map',
  ],
  [
    '$setElementOrder for a value that is not a list',
    {},
    { '$setElementOrder/host': ['a'] },
    'failed',
    'expected slice or array type, but got: struct',
  ],
]

describe('strategic merge patch', () => {
  for (const [what, original, patch, result] of MERGES) {
    it(what, () => {
      const before = structuredClone([original, patch])
      assert.deepEqual(strategicMerge(pod, original, patch), result)
      assert.deepEqual([original, patch], before)
    })
  }

  for (const [what, original, patch, code, message] of FAILURES) {
    it(`rejects ${what}`, () => {
      const refusal = (error: unknown): boolean =>
        error instanceof StrategicMergeError && error.code === code && error.message === message
      assert.throws(() => strategicMerge(pod, original, patch), refusal)
    })
  }

  it('treats keys such as __proto__ like others', () => {
    const patch = JSON.parse('{"labels":{"__proto__":"x","constructor":"y","":"z"}}') as JsonMap
    const merged = strategicMerge(pod, { labels: { a: '1' } }, patch)
    assert.equal(JSON.stringify(merged), '{"labels":{"a":"1","__proto__":"x","constructor":"y","":"z"}}')
    assert.equal(
      JSON.stringify(strategicMerge(pod, merged, { labels: { constructor: null } })),
      '{"labels":{"a":"1","__proto__":"x","":"z"}}',
    )
    assert.equal(({} as JsonMap)['x'], undefined)
  })
})
