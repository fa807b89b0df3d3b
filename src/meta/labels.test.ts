import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import {
  createRequirement,
  createSelector,
  everything,
  isEverything,
  type LabelOperator,
  labelsText,
  matchesLabels,
  nothing,
  parseSelector,
  requiredLabel,
  selectorFromLabels,
  selectorText,
} from './labels.ts'

const keyRule =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const valueRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

describe('parseSelector()', () => {
  for (const [text, canonical] of [
    ['', ''],
    ['   ', ''],
    ['a=b', 'a=b'],
    ['a == b', 'a==b'],
    ['x=a,y=b,z=c', 'x=a,y=b,z=c'],
    ['z=c,!g,a in (y,x,y)', 'a in (x,y),!g,z=c'],
    ['e notin (z),h', 'e notin (z),h'],
    ['a=', 'a='],
    ['a=,b', 'a=,b'],
    ['a in ()', 'a in ()'],
    ['a in (,x)', 'a in (,x)'],
    ['a in (x,)', 'a in (,x)'],
    ['a>1,b<2', 'a>1,b<2'],
    ['in in (in,notin)', 'in in (in,notin)'],
    ['notin=in', 'notin=in'],
    ['example.com/a!=b', 'example.com/a!=b'],
  ] as const) {
    it(`parses "${text}"`, () => assert.equal(selectorText(parseSelector(text)), canonical))
  }

  for (const [text, message] of [
    [',', "found ',', expected: !, identifier, or 'end of string'"],
    ['a,', "found '', expected: identifier after ','"],
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['!a=b', "found '=', expected: ',' or 'end of string'"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['a in', "unable to parse requirement: found '' expected: '('"],
    ['a in (', "unable to parse requirement: found '', expected: ',', ')' or identifier"],
    ['a in (x', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['a in (x y)', "unable to parse requirement: found 'y', expected: ',' or ')'"],
    ['a in (x,=)', "unable to parse requirement: found '=', expected: ',', or identifier"],
    ['a=!', "unable to parse requirement: found '!', expected: identifier"],
    ['a?', `unable to parse requirement: <nil>: Invalid value: "a?": ${keyRule}`],
    ['a=b?', `unable to parse requirement: values[0][a]: Invalid value: "b?": ${valueRule}`],
    [
      'a>x',
      `unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer`,
    ],
  ] as const) {
    it(`rejects "${text}"`, () => assert.throws(() => parseSelector(text), { message }))
  }

  it('survives printing and parsing', () => {
    fc.assert(
      fc.property(selectors, (selector) => {
        assert.deepEqual(parseSelector(selectorText(selector)), selector)
      }),
    )
  })
})

describe('matchesLabels() by a selector', () => {
  for (const [text, labels, expected] of [
    ['', {}, true],
    ['a=1', { a: '1' }, true],
    ['a=1', { a: '2' }, false],
    ['a=1', {}, false],
    ['a!=1', {}, true],
    ['a notin (1,2)', { a: '3' }, true],
    ['a in (1,2)', { a: '2' }, true],
    ['a', { a: '' }, true],
    ['!a', { a: '' }, false],
    ['a>4', { a: '5' }, true],
    ['a>5', { a: '5' }, false],
    ['a>4', { a: 'x' }, false],
    ['a<9223372036854775807', { a: '9223372036854775806' }, true],
    ['a>1', { a: '9223372036854775808' }, false],
    ['a>1,a<3', { a: '2' }, true],
    ['constructor', {}, false],
    ['!toString', {}, true],
  ] as const) {
    it(`"${text}" ${expected ? 'matches' : 'does not match'} labels ${JSON.stringify(labels)}`, () => {
      assert.equal(matchesLabels(parseSelector(text), labels), expected)
    })
  }

  it('agrees with a simple implementation', () => {
    fc.assert(
      fc.property(selectors, fc.dictionary(keys, values), (selector, labels) => {
        const naive = selector.requirements.every(({ key, operator, values }) => {
          const value = Object.entries(labels).find(([name]) => name === key)?.[1]
          const inside = value !== undefined && values.some((one) => one === value)
          return { in: inside, '=': inside, '!=': !inside, notin: !inside, exists: value !== undefined }[
            operator as 'in'
          ]
        })
        assert.equal(matchesLabels(selector, labels), naive)
      }),
    )
  })

  it('supports selectors for everything and nothing', () => {
    assert.ok(isEverything(everything) && matchesLabels(everything, undefined))
    assert.ok(!isEverything(nothing) && !matchesLabels(nothing, {}))
  })
})

describe('requirements of a label selector', () => {
  it('contain the required value of a label for indexes', () => {
    const selector = parseSelector('a=1,b in (2),c in (3,4),d!=5')
    assert.deepEqual(
      ['a', 'b', 'c', 'd', 'e'].map((key) => requiredLabel(selector, key)),
      ['1', '2', undefined, undefined, undefined],
    )
    assert.deepEqual(selector.requirements[2], { key: 'c', operator: 'in', values: ['3', '4'] })
  })

  for (const [operator, values, message] of [
    ['in', [], "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"],
    ['=', ['a', 'b'], 'values: Invalid value: ["a","b"]: exact-match compatibility requires one single value'],
    ['exists', ['a'], 'values: Invalid value: ["a"]: values set must be empty for exists and does not exist'],
    ['gt', ['1', '2'], `values: Invalid value: ["1","2"]: for 'Gt', 'Lt' operators, exactly one value is required`],
    [
      'like',
      ['a'],
      'operator: Unsupported value: "like": supported values: "in", "notin", "=", "==", "!=", "gt", "lt", "exists", "!"',
    ],
  ] as const) {
    it(`are rejected: ${operator} with ${values.length} values`, () => {
      assert.throws(() => createRequirement('a', operator as LabelOperator, values), { message })
    })
  }

  it('can be created from labels, and are printed in order', () => {
    assert.equal(selectorText(selectorFromLabels({ b: '2', a: '1' })), 'a=1,b=2')
    assert.equal(selectorFromLabels(undefined), everything)
    assert.equal(labelsText({ b: '2', a: '1' }), 'a=1,b=2')
    assert.equal(labelsText({}), '<none>')
  })
})

const keys = fc.constantFrom('a', 'b', 'example.com/c', 'in', 'notin', 'x.y')
const values = fc.constantFrom('', '1', '2', 'in', 'a.b-c')
const requirements = fc.oneof(
  fc.record({ key: keys, operator: fc.constantFrom('=', '!='), values: values.map((one) => [one]) }),
  fc.record({
    key: keys,
    operator: fc.constantFrom('in', 'notin'),
    values: fc.uniqueArray(values, { minLength: 1 }).map((list) => list.sort()),
  }),
  fc.record({ key: keys, operator: fc.constant('exists'), values: fc.constant([]) }),
)
const selectors = fc
  .array(requirements, { maxLength: 5 })
  .map((list) => list.map((one) => ({ ...one })))
  .map((list) => createSelector(list as Parameters<typeof createSelector>[0]))
