import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { readFlow } from './flow.ts'
import { parseYaml } from './yaml.ts'

/** Each with the error of sigs.k8s.io/yaml v1.6. */
const BROKEN: readonly (readonly [text: string, message: string])[] = [
  ['a: [', 'yaml: line 1: did not find expected node content'],
  ['a: [\n', 'yaml: line 1: did not find expected node content'],
  ['a: {', 'yaml: line 1: did not find expected node content'],
  ['a: {\n', 'yaml: line 1: did not find expected node content'],
  ['a: [b', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: [b\n', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: [b,', 'yaml: line 1: did not find expected node content'],
  ['a: [b,\n', 'yaml: line 1: did not find expected node content'],
  ['a: [b,\n\n', 'yaml: line 2: did not find expected node content'],
  ['a: {b', "yaml: line 1: did not find expected ',' or '}'"],
  ['a: {b:', 'yaml: line 1: did not find expected node content'],
  ['a: {b: ', 'yaml: line 1: did not find expected node content'],
  ['a: {b: c', "yaml: line 1: did not find expected ',' or '}'"],
  ['a: {b: c,', 'yaml: line 1: did not find expected node content'],
  ['a: {b: c,\n', 'yaml: line 1: did not find expected node content'],
  ['a: [\n  b\n', "yaml: line 2: did not find expected ',' or ']'"],
  ['a: [\n  b,\nc: d\n', "yaml: line 3: did not find expected ',' or ']'"],
  ['a: [b\nc: d\n', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: [b,\nc: d', "yaml: line 2: did not find expected ',' or ']'"],
  ['a: {b: c\nd: e', "yaml: line 1: did not find expected ',' or '}'"],
  ['a: {b: c\nd: e\n', "yaml: line 1: did not find expected ',' or '}'"],
  ['x: 1\na: [', 'yaml: line 2: did not find expected node content'],
  ['x: 1\na: [b', "yaml: line 2: did not find expected ',' or ']'"],
  ['x: 1\ny: {a: b', "yaml: line 2: did not find expected ',' or '}'"],
  ['[', 'yaml: line 1: did not find expected node content'],
  ['{', 'yaml: line 1: did not find expected node content'],
  ['[a', "yaml: line 1: did not find expected ',' or ']'"],
  ['{a', "yaml: line 1: did not find expected ',' or '}'"],
  ['[a, b', "yaml: line 1: did not find expected ',' or ']'"],
  ['{a: b', "yaml: line 1: did not find expected ',' or '}'"],
  ['a: ]', 'yaml: did not find expected node content'],
  ['a: }', 'yaml: did not find expected node content'],
  ['a: [}', 'yaml: did not find expected node content'],
  ['a: {]', 'yaml: did not find expected node content'],
  ['a: [b}', "yaml: did not find expected ',' or ']'"],
  ['a: {b]', "yaml: did not find expected ',' or '}'"],
  ['a: {b: c]', "yaml: did not find expected ',' or '}'"],
  ['[a b: c', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: [[b]', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: [{b: c]', "yaml: did not find expected ',' or '}'"],
  ['a: {b: [c}', "yaml: did not find expected ',' or ']'"],
  ['a: [{', 'yaml: line 1: did not find expected node content'],
  ['a: {b: [', 'yaml: line 1: did not find expected node content'],
  ['a: {b: [c', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: "b', 'yaml: found unexpected end of stream'],
  ['a: "b\n', 'yaml: line 2: found unexpected end of stream'],
  ["a: 'b", 'yaml: found unexpected end of stream'],
  ['a: [b, "c', 'yaml: found unexpected end of stream'],
  ['a: [b # c', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: [ # c', 'yaml: line 1: did not find expected node content'],
  ['a: [b, # c\n', 'yaml: line 1: did not find expected node content'],
  ['x: 1\na: [ # c\n', 'yaml: line 2: did not find expected node content'],
  ['x: [a, b]]\n', 'yaml: did not find expected key'],
  ['a: [,]', 'yaml: did not find expected node content'],
  ['a: [,', 'yaml: did not find expected node content'],
  ['a: {,}', 'yaml: did not find expected node content'],
  ['a: {,', 'yaml: did not find expected node content'],
  ['a: {b c: d e', "yaml: line 1: did not find expected ',' or '}'"],
  ['a: [?', 'yaml: line 1: did not find expected node content'],
  ['a: [? b', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: {? b', "yaml: line 1: did not find expected ',' or '}'"],
  ['a: {? b : c', "yaml: line 1: did not find expected ',' or '}'"],
  ['a: [*', 'yaml: did not find expected alphabetic or numeric character'],
  ['a: [&', 'yaml: did not find expected alphabetic or numeric character'],
  ['a: [*b', "yaml: unknown anchor 'b' referenced"],
  ['a: [b: c', "yaml: line 1: did not find expected ',' or ']'"],
  ['a: [b: ', 'yaml: line 1: did not find expected node content'],
  ['a: [b:', 'yaml: line 1: did not find expected node content'],
  ['a: [b: c,', 'yaml: line 1: did not find expected node content'],
  ['a: [\n\n\n', 'yaml: line 3: did not find expected node content'],
  ['a: [b\n\n\nc', "yaml: line 4: did not find expected ',' or ']'"],
  ['a: [-', 'yaml: did not find expected node content'],
  ['a: [- b', 'yaml: did not find expected node content'],
  ['a: [b\n- c\n', "yaml: line 2: did not find expected ',' or ']'"],
  ['- [\n', 'yaml: line 1: did not find expected node content'],
  ['- [a\n- b\n', "yaml: line 2: did not find expected ',' or ']'"],
  ['- {a: b\n- c\n', "yaml: line 2: did not find expected ',' or '}'"],
  ['a:\n  b: [\n  c: d\n', "yaml: line 3: did not find expected ',' or ']'"],
  ['a:\n  b: {\n  c: d\n', "yaml: line 3: did not find expected ',' or '}'"],
  ['a:\n  b: [x\n  c: d\n', "yaml: line 2: did not find expected ',' or ']'"],
  ['a:\n  b: [x,\n  c: d\n', "yaml: line 3: did not find expected ',' or ']'"],
  ['a: [b]c\n', 'yaml: did not find expected key'],
  ['a: [b] c\n', 'yaml: did not find expected key'],
  ['a: {b: c} d\n', 'yaml: did not find expected key'],
  ['x: 1\na: {b: c} d\n', 'yaml: line 1: did not find expected key'],
  ['a: [b]: c\n', 'yaml: mapping values are not allowed in this context'],
  ['{"a": 1', "yaml: line 1: did not find expected ',' or '}'"],
  ['{"a": 1,', 'yaml: line 1: did not find expected node content'],
  ['{"a":', 'yaml: line 1: did not find expected node content'],
  ['{"a"', "yaml: line 1: did not find expected ',' or '}'"],
  ['{"a": [1,2', "yaml: line 1: did not find expected ',' or ']'"],
  ['{"a": [1,2}', "yaml: did not find expected ',' or ']'"],
  ['{"a": [1,2]\n', "yaml: line 1: did not find expected ',' or '}'"],
  ['{\n  "a": 1\n  "b": 2\n}\n', "yaml: line 2: did not find expected ',' or '}'"],
  ['{\n  "a": 1,\n  "b" 2\n}\n', "yaml: line 2: did not find expected ',' or '}'"],
  ['{\n "a": "b\n}\n', 'yaml: line 4: found unexpected end of stream'],
  ['[1,2\n', "yaml: line 1: did not find expected ',' or ']'"],
  ['[\n1,\n2\n', "yaml: line 3: did not find expected ',' or ']'"],
]

/** go-yaml ends a document with the collection that is its root. */
const WITH_REST: readonly (readonly [text: string, value: unknown])[] = [
  ['[a]]', ['a']],
  ['{a: b}}', { a: 'b' }],
  ['{"a": 1} x', { a: 1 }],
  ['{"a": 1}\nx', { a: 1 }],
  ['{"a": 1}\nx: y', { a: 1 }],
]

function errorOf(text: string): string {
  try {
    parseYaml(text)
    return ''
  } catch (error) {
    return (error as Error).message
  }
}

describe('parseYaml with flow collections', () => {
  for (const [text, message] of BROKEN) {
    it(`rejects ${JSON.stringify(text)} as go-yaml does`, () => assert.equal(errorOf(text), message))
  }
  for (const [text, value] of WITH_REST) {
    it(`ignores text after the root of ${JSON.stringify(text)}`, () => assert.deepEqual(parseYaml(text), value))
  }

  it('reports an error of the enclosing block after a valid flow collection', () => {
    assert.equal(errorOf('a: [b]\n  c: d\n'), 'yaml: line 1: did not find expected key')
  })

  it('treats brackets in a block scalar as text', () => {
    assert.equal(errorOf('a: |\n  - [x\nb: {c'), "yaml: line 3: did not find expected ',' or '}'")
  })
})

describe('readFlow() of YAML', () => {
  it('finds the end of a flow collection', () => {
    assert.deepEqual(readFlow('x: {"a]": [1, {b: c}], d} # e', 3), { end: 25 })
  })

  it('returns undefined if a quoted scalar has no end', () => {
    assert.equal(readFlow('["a', 0), undefined)
  })
})
