import { describe } from 'node:test'

import { testRows } from './evaluate.fixture.ts'

describe('CEL functions for lists evaluate', () => {
  testRows([
    ['[1, 2, 3, 4].slice(1, 3)', [2, 3], 13],
    ['[1, 2].slice(0, 3)', '!cannot slice(0, 3), list is length 2'],
    ['[[1, 2], [3]].flatten()', [1, 2, 3]],
    ['[[[1], [2]], [[3]]].flatten(2)', [1, 2, 3], 15],
    ['[3, 1, 2].sort()', [1, 2, 3], 29],
    ['["b", "a"].sort()', ['a', 'b'], 19],
    ['["😀", "\\uFFFD"].sort() == ["\\uFFFD", "😀"]', true],
    ['[{"n": 2}, {"n": 1}].sortBy(o, o.n).map(o, o.n)', [1, 2]],
    ['[dyn(1), dyn("a")].sort()', '!list elements must have the same type'],
    ['[dyn(1), dyn(1.0), dyn(2u), dyn(2)].distinct()', [1, 2]],
    ['lists.range(3)', [0, 1, 2], 14],
    ['lists.range(-1)', []],
    ['[1, 2, 3].reverse()', [3, 2, 1]],
    ['[1, 2, 3].first().value() + [1, 2, 3].last().value()', 4],
    ['[].first().hasValue()', false],
  ])
})

describe('CEL functions for lists in Kubernetes evaluate', () => {
  testRows([
    ['[1, 2, 2].isSorted() && !["b", "a"].isSorted()', true],
    ['[1, 2, 3].sum()', 6, 3],
    ['[1.5, 2.5].sum()', 4],
    ['[duration("1s"), duration("2s")].sum()', '3s'],
    ['[9223372036854775807, 1].sum()', '!integer overflow'],
    ['["b", "a"].min() + ["b", "a"].max()', 'ab'],
    ['[].min()', '!min called on empty list'],
    ['[1, 2, 1].indexOf(1) + [1, 2, 1].lastIndexOf(1)', 2],
    ['[1].indexOf(2)', -1],
    ['[dyn(1), dyn("a")].max()', 1],
  ])
})

describe('CEL functions for sets evaluate', () => {
  testRows([
    ['sets.contains([1, 2, 3], [3, 1])', true, 7],
    ['sets.equivalent([1, 1], [1])', true, 5],
    ['sets.intersects([1], [2])', false],
    ['sets.contains([dyn(1)], [dyn(1u), dyn(1.0)])', true],
  ])
})

describe('CEL functions for optional values evaluate', () => {
  testRows([
    ['optional.ofNonZeroValue(0).hasValue() || optional.ofNonZeroValue("").hasValue()', false],
    ['optional.ofNonZeroValue([0]).value()', [0]],
    ['optional.none().value()', '!optional.none() dereference'],
    ['optional.none().or(optional.of(2)).value()', 2],
    ['{"a": {"b": 1}}.?a.?b.orValue(0)', 1],
    ['{"a": {"b": 1}}.?x.b.hasValue()', false],
    ['[1, 2][?5].orValue(9)', 9],
    ['optional.of({"a": 1}).a.value()', 1],
    ['has({"a": {}}.?a.b)', false],
    ['optional.of(3).optMap(x, x + 1).value()', 4],
    ['optional.of(3).optFlatMap(x, optional.none()).hasValue()', false],
    ['optional.unwrap([optional.of(1), optional.none()])', [1]],
  ])
})

describe('CEL macros with two variables evaluate', () => {
  testRows([
    ['[10, 20].transformList(i, v, i + v)', [10, 21]],
    ['{"a": 1}.transformMapEntry(k, v, {string(v): k})', { 1: 'a' }],
    ['[1, 1].transformMapEntry(i, v, {v: i})', '!insert failed: key 1 already exists'],
    ['[0, 1].all(i, v, i == v)', true],
    ['{"a": 1}.exists(k, v, k == "a" && v == 1)', true],
  ])
})
