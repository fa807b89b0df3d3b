import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { assertGrowth } from '../growth.fixture.ts'
import { parseJson, stringifyJson } from './json.ts'
import { applyJsonPatch, jsonEqual, type JsonPatchErrorCode } from './patch.ts'
import type { JsonObject, JsonValue } from './value.ts'

/** The results of evanphx/json-patch v4.13. */
const APPLIED: readonly (readonly [name: string, document: string, patch: string, result: string])[] = [
  ['adds a member', '{"a":1}', '[{"op":"add","path":"/b","value":2}]', '{"a":1,"b":2}'],
  ['overwrites an existing member with add', '{"a":1}', '[{"op":"add","path":"/a","value":null}]', '{"a":null}'],
  ['adds null if the operation has no value', '{}', '[{"op":"add","path":"/a"}]', '{"a":null}'],
  ['inserts an element into an array', '[1,3]', '[{"op":"add","path":"/1","value":2}]', '[1,2,3]'],
  [
    'appends an element to an array with index -',
    '{"a":[1]}',
    '[{"op":"add","path":"/a/-","value":2},{"op":"add","path":"/a/2","value":3}]',
    '{"a":[1,2,3]}',
  ],
  [
    'counts negative indexes from the end',
    '[1,2]',
    '[{"op":"add","path":"/-1","value":3},{"op":"remove","path":"/-3"},{"op":"replace","path":"/-1","value":9}]',
    '[2,9]',
  ],
  [
    'decodes ~0 and ~1 in pointers',
    '{"a/b":1,"m~n":2,"":3}',
    '[{"op":"remove","path":"/a~1b"},{"op":"replace","path":"/m~0n","value":0},{"op":"replace","path":"/","value":4}]',
    '{"":4,"m~n":0}',
  ],
  ['decodes ~01 to ~1', '{"~1":1}', '[{"op":"remove","path":"/~01"}]', '{}'],
  ['adds a missing member with replace', '{}', '[{"op":"replace","path":"/a","value":1}]', '{"a":1}'],
  [
    'replaces the whole document',
    '{"a":1}',
    '[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/-","value":2}]',
    '[1,2]',
  ],
  ['moves a value', '{"a":{"b":1},"c":[]}', '[{"op":"move","from":"/a/b","path":"/c/0"}]', '{"a":{},"c":[1]}'],
  [
    'copies a value',
    '{"a":[1]}',
    '[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/-","value":2}]',
    '{"a":[1],"b":[1,2]}',
  ],
  ['copies a missing value as null', '{}', '[{"op":"copy","from":"/a","path":"/b"}]', '{"b":null}'],
  [
    'compares objects in a test operation regardless of key order',
    '{"a":{"x":1,"y":[2]}}',
    '[{"op":"test","path":"/a","value":{"y":[2],"x":1}}]',
    '{"a":{"x":1,"y":[2]}}',
  ],
  [
    'compares the whole document in a test operation',
    '{"a":1}',
    '[{"op":"test","path":"","value":{"a":1}}]',
    '{"a":1}',
  ],
  [
    'treats a missing member as null in a test operation',
    '{}',
    '[{"op":"test","path":"/a","value":null},{"op":"test","path":"/a"}]',
    '{}',
  ],
  [
    'keeps big integers',
    '{"a":9223372036854775807}',
    '[{"op":"copy","from":"/a","path":"/b"}]',
    '{"a":9223372036854775807,"b":9223372036854775807}',
  ],
  [
    'treats __proto__ as an ordinary key',
    '{}',
    '[{"op":"add","path":"/__proto__","value":{"x":1}},{"op":"add","path":"/__proto__/y","value":2}]',
    '{"__proto__":{"x":1,"y":2}}',
  ],
]

const REFUSED: readonly (readonly [document: string, patch: string, code: JsonPatchErrorCode, message: string])[] = [
  ['{}', '{}', 'malformed', 'json: cannot unmarshal object into Go value of type jsonpatch.Patch'],
  ['{}', '[1]', 'malformed', 'json: cannot unmarshal number into Go value of type jsonpatch.Operation'],
  ['{}', '[{"op":"nope","path":"/a"}]', 'malformed', 'Unexpected kind: nope'],
  ['{}', '[{"op":"constructor","path":"/a"}]', 'malformed', 'Unexpected kind: constructor'],
  [
    '{}',
    '[{"op":"add","path":"/a/b","value":1}]',
    'path',
    'add operation does not apply: doc is missing path: "/a/b": missing value',
  ],
  [
    '{"a":1}',
    '[{"op":"add","path":"/a/b","value":1}]',
    'path',
    'add operation does not apply: doc is missing path: "/a/b": missing value',
  ],
  [
    '{"a":1}',
    '[{"op":"add","path":"","value":1}]',
    'path',
    'add operation does not apply: doc is missing path: "": missing value',
  ],
  [
    '{}',
    '[{"op":"add","path":"/constructor/x","value":1}]',
    'path',
    'add operation does not apply: doc is missing path: "/constructor/x": missing value',
  ],
  [
    '{}',
    '[{"op":"remove","path":"/a"}]',
    'path',
    "error in remove for path: '/a': Unable to remove nonexistent key: a: missing value",
  ],
  [
    '[1]',
    '[{"op":"remove","path":"/1"}]',
    'path',
    "error in remove for path: '/1': Unable to access invalid index: 1: invalid index referenced",
  ],
  [
    '[1]',
    '[{"op":"add","path":"/-3","value":1}]',
    'path',
    "error in add for path: '/-3': Unable to access invalid index: -3: invalid index referenced",
  ],
  [
    '[1]',
    '[{"op":"add","path":"/x","value":1}]',
    'path',
    `error in add for path: '/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax`,
  ],
  [
    '[1]',
    '[{"op":"replace","path":"/1","value":1}]',
    'path',
    'replace operation does not apply: doc is missing key: /1: missing value',
  ],
  [
    '{"a":{"b":1}}',
    '[{"op":"move","from":"/a","path":"/a/b"}]',
    'path',
    'move operation does not apply: doc is missing destination path: /a/b: missing value',
  ],
  ['{"a":1}', '[{"op":"test","path":"/a","value":2}]', 'test', 'testing value /a failed: test failed'],
  ['{"a":1}', '[{"op":"test","path":"/a","value":"1"}]', 'test', 'testing value /a failed: test failed'],
  ['{}', '[{"op":"add","value":1}]', 'path', 'add operation failed to decode path: missing value'],
]

describe('applyJsonPatch', () => {
  for (const [name, document, patch, result] of APPLIED) {
    it(name, () => {
      const [before, operations] = [parseJson(document), parseJson(patch)]
      assert.equal(stringifyJson(applyJsonPatch(before, operations), { sortedKeys: true }), result)
      assert.deepEqual(before, parseJson(document))
      assert.deepEqual(operations, parseJson(patch))
    })
  }

  it('rejects impossible operations with distinct errors', () => {
    for (const [document, patch, code, message] of REFUSED) {
      assert.throws(() => applyJsonPatch(parseJson(document), parseJson(patch)), { code, message }, patch)
    }
    assert.equal(({} as Record<string, unknown>).x, undefined)
  })

  it('limits the size of the document and the number of operations', () => {
    const operations = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: null }))
    assert.throws(() => applyJsonPatch({}, operations), {
      code: 'operations',
      message: 'The allowed maximum operations in a JSON patch is 10000, got 10001',
    })
    // Each copy doubles the document.
    const bomb = Array.from({ length: 40 }, () => ({ op: 'copy', from: '/a', path: '/a/-' }))
    assert.throws(() => applyJsonPatch({ a: ['x'.repeat(100)] }, bomb), { code: 'copies' })
    assert.throws(
      () =>
        applyJsonPatch({ a: 'xxxx' }, [{ op: 'copy', from: '/a', path: '/b' }], { maxOperations: 1, maxCopyBytes: 5 }),
      {
        message: 'Unable to complete the copy, the accumulated size increase of copy is 6, exceeding the limit 5',
      },
    )
  })

  it('applies ten thousand operations to one large array quickly', () => {
    const document = { items: Array.from({ length: 10_000 }, (_, index) => index) }
    const patch = Array.from({ length: 10_000 }, () => ({ op: 'remove', path: '/items/-1' }))
    assert.deepEqual(applyJsonPatch(document, patch), { items: [] })
    assert.equal(document.items.length, 10_000)
  })

  it('copies within a large map in time linear in map and patch', () => {
    const map = (size: number): JsonObject => Object.fromEntries(Array.from({ length: size }, (_, n) => [`k${n}`, '']))
    const patch = (size: number): JsonValue[] =>
      Array.from({ length: size / 20 }, (_, n) => ({ op: 'copy', from: '/data/k0', path: `/data/c${n}` }))
    assertGrowth(
      8000,
      (size) => ({ document: { data: map(size) }, patch: patch(size) }),
      (input) => applyJsonPatch(input.document, input.patch),
    )
  })

  it('inserts into and removes from a long array in linear time', () => {
    const patch = (size: number): JsonValue[] =>
      Array.from({ length: size / 25 }, (_, n) =>
        n % 2 === 0 ? { op: 'add', path: '/items/0', value: n } : { op: 'remove', path: '/items/1' },
      )
    assertGrowth(
      50_000,
      (size) => ({ document: { items: Array.from({ length: size }, () => 'x') }, patch: patch(size) }),
      (input) => applyJsonPatch(input.document, input.patch),
    )
  })

  it('equals separate operations on a copy of a long array', () => {
    const long = Array.from({ length: 5000 }, (_, n) => n)
    fc.assert(
      fc.property(fc.array(operation(), { maxLength: 12 }), (patch) => {
        const document = { a: [...long, [1, { a: 1 }]], b: { a: 1 } }
        const expected = outcome(() =>
          patch.reduce<JsonValue>((value, single) => naive(value, single), structuredClone(document)),
        )
        assert.deepEqual(
          outcome(() => applyJsonPatch(document, patch)),
          expected,
        )
        assert.equal(document.a.length, 5001)
      }),
    )
  })

  it('equals separate operations on a copy, without changing its input', () => {
    fc.assert(
      fc.property(tree(), fc.array(operation(), { maxLength: 8 }), (document, patch) => {
        const [before, given] = [structuredClone(document), structuredClone(patch)]
        const expected = outcome(() =>
          patch.reduce<JsonValue>((value, single) => naive(value, single), structuredClone(document)),
        )
        const actual = outcome(() => applyJsonPatch(document, patch))
        assert.deepEqual(actual, expected)
        assert.deepEqual(document, before)
        assert.deepEqual(patch, given)
      }),
      { numRuns: 500 },
    )
  })
})

const KEY = fc.constantFrom('a', 'b', '0', '__proto__')

function tree(): fc.Arbitrary<JsonValue> {
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<JsonValue>(1, 'x', true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.array(fc.tuple(KEY, tie('value')), { maxLength: 3 }).map((members) => Object.fromEntries(members)),
    ),
  }))
  return value
}

function operation(): fc.Arbitrary<JsonObject> {
  const path = fc
    .array(fc.constantFrom('a', 'b', '0', '1', '-1', '-', '__proto__'), { minLength: 1, maxLength: 3 })
    .map((steps) => `/${steps.join('/')}`)
  return fc.record(
    { op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy'), path, from: path, value: tree() },
    { noNullPrototype: true },
  )
}

function outcome(run: () => JsonValue): unknown {
  try {
    return { value: run() }
  } catch {
    return 'refused'
  }
}

/** A reference implementation that modifies its document in place. */
function naive(document: JsonValue, { op, path, from, value }: JsonObject): JsonValue {
  const place = (pointer: string): { parent: JsonValue; key: string } => {
    const steps = pointer.split('/').slice(1)
    const key = steps.pop()!
    return { parent: steps.reduce<JsonValue>((inner, step) => look(inner, step) ?? assert.fail(), document), key }
  }
  const take = (pointer: string): JsonValue => {
    const { parent, key } = place(pointer)
    const found = look(parent, key)
    // A copied nothing is null, and null is there to be taken.
    assert.ok(found !== undefined)
    if (Array.isArray(parent)) parent.splice(indexOf(parent, key, parent.length), 1)
    else delete (parent as JsonObject)[key]
    return found
  }
  const put = (pointer: string, item: JsonValue): void => {
    const { parent, key } = place(pointer)
    if (!Array.isArray(parent)) {
      assert.ok(typeof parent === 'object')
      Object.defineProperty(parent, key, { value: item, writable: true, enumerable: true, configurable: true })
    } else parent.splice(key === '-' ? parent.length : indexOf(parent, key, parent.length + 1), 0, item)
  }
  if (op === 'remove') take(path as string)
  else if (op === 'move') put(path as string, take(from as string))
  else if (op === 'copy') {
    const { parent, key } = place(from as string)
    assert.ok(typeof parent === 'object')
    put(path as string, structuredClone(look(parent, key) ?? (Array.isArray(parent) ? assert.fail() : null)))
  } else {
    const { parent, key } = place(path as string)
    const copy = structuredClone(value as JsonValue)
    if (op === 'replace' && Array.isArray(parent)) parent[indexOf(parent, key, parent.length)] = copy
    else put(path as string, copy)
  }
  return document
}

function look(parent: JsonValue, key: string): JsonValue | undefined {
  if (Array.isArray(parent)) return parent[indexOf(parent, key, parent.length)]
  return typeof parent === 'object' && parent !== null && Object.hasOwn(parent, key)
    ? (parent as JsonObject)[key]
    : undefined
}

function indexOf(array: readonly JsonValue[], key: string, length: number): number {
  const index = Number(key)
  const actual = index < 0 ? index + length : index
  assert.ok(Number.isInteger(index) && key !== '-' && actual >= 0 && actual < length && array)
  return actual
}

describe('jsonEqual', () => {
  it('agrees with deep equality of any two values', () => {
    fc.assert(
      fc.property(tree(), tree(), (left, right) => {
        assert.equal(jsonEqual(left, structuredClone(left)), true)
        assert.equal(
          jsonEqual(left, right),
          stringifyJson(left, { sortedKeys: true }) === stringifyJson(right, { sortedKeys: true }),
        )
      }),
    )
    assert.equal(jsonEqual(parseJson('[1.0]', { exactNumbers: true }), [1]), true)
    assert.equal(jsonEqual(parseJson('[1.5]', { exactNumbers: true }), ['1.5']), false)
  })
})
