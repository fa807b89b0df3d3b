import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createEnvironment } from '../environment.ts'
import {
  BOOL,
  type CelType,
  DYN,
  INT,
  type ListType,
  listOf,
  type MapType,
  mapOf,
  type ObjectType,
  STRING,
} from '../type.ts'

const sizedList = (element: CelType, maxSize: number): ListType => ({ ...listOf(element), maxSize })
const sizedMap = (value: CelType, maxSize: number): MapType => ({ ...mapOf(STRING, value), maxSize })

const fields: Readonly<Record<string, CelType>> = {
  list: sizedList(INT, 10),
  rows: sizedList(sizedList(BOOL, 5), 4),
  map: sizedMap(sizedList(INT, 7), 3),
  any: DYN,
}
const SELF: ObjectType = {
  kind: 'object',
  name: 'Self',
  field: (name) => fields[name] && { type: fields[name], jsonName: name },
}

const environment = createEnvironment({ variables: { self: SELF, other: listOf(INT), b: BOOL } })

function estimate(source: string): string {
  const compiled = environment.compile(source)
  assert.ok(compiled.issues === undefined, compiled.issues === undefined ? '' : compiled.report)
  const { min, max } = compiled.estimateCost()
  return min === max ? `${min}` : `${min}..${max}`
}

const UNBOUNDED = '18446744073709551615'

describe('cost estimate of a CEL expression', () => {
  const table: readonly (readonly [what: string, source: string, cost: string])[] = [
    ['is 0 for a literal', '1', '0'],
    ['is 1 for a variable', 'b', '1'],
    ['counts each selection', 'self.map', '2'],
    ['is that of the value for a field of a dynamic value', 'self.any.x.y', '2'],
    ['is that of the operand for has()', 'has(self.map.x)', '2'],
    ['counts the elements of a list literal', '[b, b]', '12'],
    ['counts the entries of a map literal', "{'a': b}", '31'],
    ['counts the fields of a message literal', 'google.protobuf.BoolValue{value: b}', '41'],
    ['is at least that of the left side for &&', 'b && b && b', '1..3'],
    ['has the more expensive branch of a conditional as its maximum', 'b ? self.map.size() : 1', '1..4'],
    ['follows the size limit of the type for a loop', 'self.list.all(x, true)', '3..33'],
    ['of a loop over a literal is exact', '[1, 2].all(x, true)', '17'],
    ['is unbounded for a loop over a list without a limit', 'other.all(x, true)', `2..${UNBOUNDED}`],
    ['multiplies nested loops', 'self.rows.all(r, r.all(x, x))', '3..103'],
    ['multiplies the size limits for a loop over the values of a map', 'self.map.all(k, v, v.all(x, true))', '3..81'],
    ['follows the size limit of the entry for a loop over an entry of a map', "self.map['a'].all(x, true)", '4..25'],
    ['follows the size of the list for a loop over a mapped list', 'self.list.map(x, x).all(y, true)', '14..174'],
    ['follows the longer list for a loop over one of two lists', '(b ? self.list : self.list).all(x, true)', '4..34'],
    ['keeps the size limit through dyn()', 'dyn(self.list).all(x, true)', '4..34'],
    ['is 2 for an optional selection', 'self.?map', '2'],
  ]
  for (const [what, source, cost] of table) {
    it(`${what}: ${source}`, () => {
      assert.equal(estimate(source), cost)
    })
  }

  it('uses the same size limit as upstream, even where upstream takes that of another field', () => {
    // The path of `s.a` is overwritten when `s.b` is appended to the same path, before the loop over `s.a` is counted.
    const item: ObjectType = {
      kind: 'object',
      name: 'Item',
      field: (name) => ({ type: sizedList(INT, name === 'a' ? 100 : 1), jsonName: name }),
    }
    const items = createEnvironment({
      variables: {
        self: { kind: 'object', name: 'S', field: (name) => ({ type: sizedList(item, 1), jsonName: name }) },
      },
    })
    const compiled = items.compile('self.items.all(s, s.a.all(x, x in s.b))')
    assert.ok(compiled.issues === undefined)
    assert.equal(compiled.estimateCost().max < 100n, true)
  })
})
