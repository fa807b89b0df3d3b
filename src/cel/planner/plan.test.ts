import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createEnvironment } from '../environment.ts'
import { BOOL, DYN, INT, STRING, listOf, mapOf, type CelType, type ObjectType } from '../type.ts'
import { CelBudgetError, CelError, Failure, type Value } from '../value.ts'
import { fromJson } from '../values/json.ts'
import { toJson } from '../values/to-json.ts'
import { fromTyped } from '../values/typed.ts'

const variables: Readonly<Record<string, CelType>> = {
  object: DYN,
  n: INT,
  s: STRING,
  flag: BOOL,
  numbers: listOf(INT),
  labels: mapOf(STRING, STRING),
  unset: INT,
}

const values: Readonly<Record<string, Value>> = {
  object: fromJson({
    metadata: { name: 'web', labels: { app: 'x' } },
    spec: { replicas: 3, ratio: 0.5, containers: [{ image: 'a:1' }, { image: 'b' }], nothing: null },
  }),
  n: 7,
  s: 'héllo',
  flag: true,
  numbers: fromJson([3, 1, 2]),
  labels: fromJson({ app: 'x', tier: 'back' }),
}

const environment = createEnvironment({ variables })

interface Outcome {
  readonly value?: unknown
  readonly error?: string
  readonly cost: number
}

function run(source: string, limit = 1_000_000): Outcome {
  const compiled = environment.compile(source)
  assert.ok(compiled.issues === undefined, JSON.stringify(compiled.issues))
  const budget = { limit, spent: 0 }
  try {
    return { value: toJson(compiled.program().evaluate(values, budget)), cost: budget.spent }
  } catch (error) {
    assert.ok(error instanceof CelError)
    return { error: error.message, cost: budget.spent }
  }
}

/** Expression, value, cost. */
const sound: readonly (readonly [string, unknown, number])[] = [
  ['1 + 2', 3, 1],
  ['9007199254740993', 9007199254740993n, 0],
  ['9007199254740992 + n', 9007199254740999n, 2],
  ['object.spec.replicas > 2', true, 4],
  ['object.spec.ratio', 0.5, 3],
  ['object.spec.containers[1].image', 'b', 5],
  ['object.spec.containers.all(c, c.image.size() > 0)', true, 18],
  ['object.spec.containers.exists(c, c.image.startsWith("a"))', true, 14],
  ['has(object.spec.nothing)', true, 2],
  ['has(object.spec.other)', false, 2],
  ['object.?spec.?other.orValue(5)', 5, 2],
  ['object.spec.?replicas', 3, 3],
  ['object.other.f == 1 || true', true, 3],
  ['false && object.other.f', false, 0],
  ['object.other.f == 1 && n == 1', false, 5],
  ['flag ? n : 0', 7, 1],
  ['has((flag ? object : object).spec)', true, 1],
  ['flag ? object.spec.replicas : 0', 3, 3],
  ['n in [1, 7]', true, 1],
  ['n in numbers', false, 5],
  ['"app" in labels', true, 2],
  ['numbers.map(x, x * n)', [21, 7, 14], 47],
  ['numbers.filter(x, x > 1)', [3, 2], 34],
  ['numbers.exists_one(x, x == 1)', true, 11],
  ['labels.transformMap(k, v, k + v)', { app: 'appx', tier: 'tierback' }, 14],
  ['[[1], [2, 3]].flatten()', [1, 2, 3], 13],
  ['s.size()', 5, 2],
  ['[?optional.none(), ?optional.of(1)]', [1], 12],
  ['{"a": 1, ?"b": optional.none()}', { a: 1 }, 31],
  ['string(timestamp("2024-01-02T03:04:05+01:00"))', '2024-01-02T03:04:05+01:00', 0],
  ['dyn(1) == 1u && dyn(1) == 1.0', true, 2],
  ['0.0/0.0 == 0.0/0.0', false, 3],
  ['[null][0]', null, 2],
  ['{"a": null}["a"]', null, 2],
  ['{true: null}[true] == null', true, 3],
  ['google.protobuf.FloatValue{value: 1.333} == 1.333', false, 41],
  ['google.protobuf.Int32Value{value: -2147483648}', -2147483648, 40],
]

/** Expression, message, cost. */
const failing: readonly (readonly [string, string, number])[] = [
  ['object.spec.replicas.matches("a")', 'no such overload', 4],
  ['matches(object.spec.replicas, "a")', 'no such overload', 4],
  ['object.metadata.name.findAll("a", object.metadata.name)', 'no such overload', 7],
  ['unset + 1', 'no such attribute(s): unset', 2],
  ['object.spec.other', 'no such key: other', 3],
  ['object.spec.replicas.x', 'no such key: x', 4],
  ['object.spec.containers.image', "unsupported index type 'string' in list", 4],
  ['numbers[3]', 'index out of bounds: 3', 2],
  ['n / 0', 'division by zero', 2],
  ['9223372036854775807 + n', 'integer overflow', 2],
  ['object.spec + 1', 'no such overload: _+_', 3],
  ['object.metadata.name + 1', 'no such overload', 4],
  ['object.spec.replicas.startsWith("a")', 'no such overload', 4],
  ['quantity(object.spec.replicas)', 'no such overload: quantity(int)', 4],
  ['labels[dyn(b"x")]', 'invalid qualifier type: types.Bytes', 0],
  ['numbers[dyn(null)]', 'invalid qualifier type: types.Null', 0],
  ['google.protobuf.Any{}', 'unsupported conversion to ref.Val: (*dynamicpb.Message)', 40],
  [
    'google.protobuf.Int32Value{value: 2147483648}',
    'field type conversion error for google.protobuf.Int32Value.value value type: integer overflow',
    40,
  ],
  [
    'google.protobuf.UInt32Value{value: 4294967296u}',
    'field type conversion error for google.protobuf.UInt32Value.value value type: unsigned integer overflow',
    40,
  ],
]

describe('evaluation of a CEL expression', () => {
  for (const [source, value, cost] of sound) {
    it(`evaluates the expression \`${source}\` at cost ${cost}`, () => {
      assert.deepEqual(run(source), { value, cost })
    })
  }

  for (const [source, error, cost] of failing) {
    it(`fails with "${error}" at cost ${cost} for ${source}`, () => assert.deepEqual(run(source), { error, cost }))
  }

  it('is refused in advance if a constant subexpression fails', () => {
    const compiled = environment.compile('int("x") == n')
    assert.ok(compiled.issues === undefined)
    assert.throws(() => compiled.program(), new CelError("type conversion error from 'string' to 'int'"))
  })

  it('returns the cost up to the step that exceeds the limit', () => {
    const nested = 'lists.range(500).exists(x, lists.range(500).exists(y, false))'
    assert.deepEqual(run(nested), { error: 'operation cancelled: actual cost limit exceeded', cost: 1_000_001 })
    assert.equal(run('numbers.all(x, x > 0)', 6).cost, 7)
    assert.equal(run('object.metadata.labels.app', 1).cost, 2)
  })

  it('fails if it costs more than the limit', () => {
    assert.equal(run('n + n', 3).value, 14)
    assert.equal(run('n + n', 2).error, 'operation cancelled: actual cost limit exceeded')
  })

  it('charges a long search before it runs', () => {
    const compiled = environment.compile('lists.range(n * 1000000000).exists(x, false)')
    assert.ok(compiled.issues === undefined)
    assert.throws(() => compiled.program().evaluate(values, { limit: 1000, spent: 0 }), CelBudgetError)
  })

  it('fails for values that are nested too deeply', () => {
    let deep: unknown = 1
    for (let level = 0; level < 100_000; level++) deep = [deep]
    const compiled = environment.compile('object == object')
    assert.ok(compiled.issues === undefined)
    assert.throws(
      () => compiled.program().evaluate({ object: fromJson(deep) }, { limit: 1000, spent: 0 }),
      CelBudgetError,
    )
  })

  it('fails if its work exceeds a budget that is independent of the CEL cost', () => {
    const source = 'lists.range(10000).all(x, s.matches("x{1000}y") == false && x >= 0)'
    const compiled = createEnvironment({ variables }).compile(source)
    assert.ok(compiled.issues === undefined)
    const long = { ...values, s: 'x'.repeat(5000) }
    assert.throws(() => compiled.program().evaluate(long, { limit: 1_000_000_000, spent: 0 }), CelBudgetError)
  })
})

describe('CEL evaluation of JSON with declared types', () => {
  const item: ObjectType = {
    kind: 'object',
    name: 'Item',
    field: (name) =>
      ({ id: { type: STRING, jsonName: 'id' }, at: { type: { kind: 'timestamp' as const }, jsonName: 'at' } })[name],
  }
  const fields: Readonly<Record<string, { type: CelType; jsonName: string }>> = {
    count: { type: INT, jsonName: 'count' },
    share: { type: { kind: 'double' }, jsonName: 'share' },
    dash__dash__ed: { type: STRING, jsonName: 'dash-ed' },
    constructor: { type: STRING, jsonName: 'constructor' },
    tags: { type: { kind: 'list', element: STRING, semantics: { listType: 'set' } }, jsonName: 'tags' },
    other: { type: { kind: 'list', element: STRING, semantics: { listType: 'set' } }, jsonName: 'other' },
    items: {
      type: { kind: 'list', element: item, semantics: { listType: 'map', keys: ['id'] } },
      jsonName: 'items',
    },
    raw: { type: { kind: 'bytes' }, jsonName: 'raw' },
    wait: { type: { kind: 'duration' }, jsonName: 'wait' },
  }
  const type: ObjectType = {
    kind: 'object',
    name: 'Thing',
    field: (name) => (Object.hasOwn(fields, name) ? fields[name] : undefined),
  }
  const typed = createEnvironment({ variables: { self: type, oldSelf: type } })
  const self = {
    count: 2,
    share: 1,
    'dash-ed': 'd',
    tags: ['a', 'b'],
    other: ['b', 'a'],
    items: [{ id: 'x', at: '2024-01-01T00:00:00Z' }, { id: 'y' }],
    raw: 'aGk=',
    wait: '1d',
    unknown: 1,
  }

  const check = (source: string, old: object = self): unknown => {
    const compiled = typed.compile(source)
    assert.ok(compiled.issues === undefined, JSON.stringify(compiled.issues))
    const variables = { self: fromTyped(self, type) as Value, oldSelf: fromTyped(old, type) as Value }
    try {
      return toJson(compiled.program().evaluate(variables, { limit: 1_000_000, spent: 0 }))
    } catch (error) {
      return (error as Error).message
    }
  }

  const cases: readonly (readonly [string, unknown])[] = [
    ['self.count + 1', 3],
    ['type(self.share) == double', true],
    ['self.dash__dash__ed', 'd'],
    ['has(self.constructor)', false],
    ['self.constructor', 'no such key: constructor'],
    ['self.tags == self.other', true],
    ['self.tags + ["c", "a"]', ['a', 'b', 'c']],
    ['self.items[0].at.getFullYear()', 2024],
    ['string(self.raw)', 'hi'],
    ['self.wait == duration("24h")', true],
    ['self == oldSelf', true],
    ['self.items.exists(i, i.id == "y" && !has(i.at))', true],
  ]
  for (const [source, value] of cases)
    it(`yields ${JSON.stringify(value)} for ${source}`, () => assert.deepEqual(check(source), value))

  it("fails with Go's error for an invalid timestamp", () => {
    const complaint = (text: string): unknown => fromTyped(text, { kind: 'timestamp' })
    assert.deepEqual(
      complaint('soon'),
      new Failure(
        'Invalid date-time formatted string soon: parsing time "soon" as "2006-01-02T15:04:05": cannot parse "soon" as "2006"',
      ),
    )
    assert.deepEqual(
      complaint('2024-01-01T00:00:00?'),
      new Failure(
        'Invalid date-time formatted string 2024-01-01T00:00:00?: parsing time "2024-01-01T00:00:00?": extra text: "?"',
      ),
    )
  })

  it('compares map lists by key, and unknown fields of objects', () => {
    const turned = { ...self, items: self.items.toReversed() }
    assert.equal(check('self == oldSelf', turned), true)
    assert.equal(check('self == oldSelf', { ...self, unknown: 2 }), false)
    assert.equal(check('self.items == oldSelf.items', { ...self, items: [{ id: 'x' }, { id: 'y' }] }), false)
  })
})
