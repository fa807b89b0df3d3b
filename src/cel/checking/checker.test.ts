import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createEnvironment } from '../environment.ts'
import {
  BOOL,
  type CelType,
  describeType,
  DYN,
  INT,
  listOf,
  mapOf,
  type ObjectType,
  optionalOf,
  STRING,
  TIMESTAMP,
} from '../type.ts'

const POD: ObjectType = {
  kind: 'object',
  name: 'Pod',
  field: (name) => {
    const fields: Record<string, CelType> = { name: STRING, ports: listOf(INT), owner: POD, namespace: STRING }
    const type = fields[name]
    return type && { type, jsonName: name }
  },
}

const environment = createEnvironment({
  variables: {
    i: INT,
    s: STRING,
    d: DYN,
    l: listOf(INT),
    m: mapOf(STRING, INT),
    o: optionalOf(mapOf(STRING, INT)),
    pod: POD,
    t: TIMESTAMP,
    'a.b': BOOL,
  },
  typeNamed: (name) => (/^Pod(\.\w+)*$/.test(name) ? POD : undefined),
})

function typeOf(source: string): string {
  const compiled = environment.compile(source)
  return compiled.issues === undefined ? describeType(compiled.type) : compiled.report
}

function messages(source: string): readonly string[] {
  const { issues } = environment.compile(source)
  assert.ok(issues, `${source} compiles`)
  return issues.map(({ column, message }) => `${column} ${message}`)
}

describe('CEL type checker', () => {
  const table: readonly (readonly [source: string, type: string])[] = [
    ['null', 'null_type'],
    ['[]', 'list(dyn)'],
    ['{}', 'map(dyn, dyn)'],
    ['[[], [1]]', 'list(list(int))'],
    ["{'a': [1]}", 'map(string, list(int))'],
    ['[?optional.of(1), 2]', 'list(int)'],
    ['pod.owner.ports[0]', 'int'],
    ['pod.namespace', 'string'],
    ['has(pod.name)', 'bool'],
    ['pod == null', 'bool'],
    ['t == null', 'bool'],
    ['a.b', 'bool'],
    ['.a.b', 'bool'],
    ['d.x.y', 'dyn'],
    ['d + 1', 'int'],
    ['d + d', 'dyn'],
    ['i < 1.5', 'bool'],
    ['m.x', 'int'],
    ['m.?x', 'optional_type(int)'],
    ['o.x', 'optional_type(int)'],
    ["o[?'x']", 'optional_type(int)'],
    ['o.x.orValue(1)', 'int'],
    ['l.map(x, [x])', 'list(list(int))'],
    ['m.map(k, k)', 'list(string)'],
    ['l.transformMap(i, v, string(v))', 'map(int, string)'],
    ['m.transformMapEntry(k, v, {v: k})', 'map(int, string)'],
    ['[].map(x, x)', 'list(dyn)'],
    ['true ? [] : l', 'list(int)'],
    ['o.optMap(x, x.y)', 'optional_type(int)'],
    ['l.sortBy(x, -x)', 'list(int)'],
    ["strings.quote('a')", 'string'],
    ['type(1)', 'type(int)'],
    ['type(pod)', 'type(Pod)'],
    ['google.protobuf.Timestamp', 'type(google.protobuf.Timestamp)'],
    ['list', 'type(list(dyn))'],
    ['l.all(i, i > 0)', 'bool'],
    ["Pod{name: 'a', owner: Pod{}}", 'Pod'],
    ["Pod{?name: optional.of('a')}", 'Pod'],
    ['Pod{owner: Pod.owner.owner{}}', 'Pod'],
    ['type(pod) == Pod.owner', 'bool'],
    ['google.protobuf.Int64Value{value: 1}', 'wrapper(int)'],
    ['google.protobuf.Int64Value{value: 1} == null', 'bool'],
    ['google.protobuf.Value{}', 'dyn'],
    ["'%d %s'.format([1, 'a'])", 'string'],
  ]
  for (const [source, type] of table) {
    it(`finds that ${source} has type ${type}`, () => {
      assert.equal(typeOf(source), type)
    })
  }
})

describe('CEL type checker with an invalid expression', () => {
  const table: readonly (readonly [source: string, ...found: string[]])[] = [
    ['x', "0 undeclared reference to 'x' (in container '')"],
    ['x.y + z()', "0 undeclared reference to 'x' (in container '')", "7 undeclared reference to 'z' (in container '')"],
    ['pod.nme', "3 undefined field 'nme'"],
    ['i.x', "1 type 'int' does not support field selection"],
    ['i + s', "2 found no matching overload for '_+_' applied to '(int, string)'"],
    ['s.size(1)', "6 found no matching overload for 'size' applied to 'string.(int)'"],
    ['i == null', "2 found no matching overload for '_==_' applied to '(int, null)'"],
    ['pod == m', "4 found no matching overload for '_==_' applied to '(Pod, map(string, int))'"],
    ['i && s', "0 expected type 'bool' but found 'int'", "5 expected type 'bool' but found 'string'"],
    ['l.all(x, x)', "9 expected type 'bool' but found 'int'"],
    ['i.all(x, true)', "0 expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"],
    ['l.all(x, true) || x', "18 undeclared reference to 'x' (in container '')"],
    ["[1, 'a', 2u]", "4 expected type 'int' but found 'string'"],
    ["{1: 'a', 'b': 2}", "9 expected type 'int' but found 'string'", "14 expected type 'string' but found 'int'"],
    ['[d, 1]', "4 expected type 'dyn' but found 'int'"],
    ['[?1]', "2 expected type 'optional_type(int)' but found 'int'"],
    ['Pod{nme: 1}', "7 undefined field 'nme'"],
    ['Pod{name: 1}', "8 expected type of field 'name' is 'string' but provided type is 'int'"],
    ['int{}', "3 'int' is not a message type"],
    ['google.protobuf.Value{constructor: 1}', "33 undefined field 'constructor'"],
    [
      'constructor(1) || toString()',
      "11 undeclared reference to 'constructor' (in container '')",
      "26 undeclared reference to 'toString' (in container '')",
    ],
    ['i{}', "1 'int' is not a type"],
    ['Nope{a: b}', "4 undeclared reference to 'Nope' (in container '')"],
    ["quantity('1').x", "13 unexpected failed resolution of 'kubernetes.Quantity'"],
    ["ip('::1').x", "9 type 'net.IP' does not support field selection"],
    ["'%d'.format(['a'])", '13 error during formatting: decimal clause can only be used on integers, was given string'],
    ["'%s %s'.format(['a'])", '14 index 1 out of range'],
    ["'%s'.format([1, 2])", '11 too many arguments supplied to string.format (expected 1, got 2)'],
    ["'%'.format([1])", '10 unexpected end of string'],
    ["'%.2q'.format([1])", '13 could not parse formatting clause: unrecognized formatting clause "q"'],
    [
      "'%s'.format([[ip('::1')]])",
      '16 error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given net.IP',
    ],
  ]
  for (const [source, ...found] of table) {
    it(`rejects ${source}`, () => {
      assert.deepEqual(messages(source), found)
    })
  }

  it('reports at most a hundred issues', () => {
    const { report, issues } = environment.compile(`[${'x,'.repeat(150)}]`) as { report: string; issues: unknown[] }
    assert.equal(issues.length, 100)
    assert.match(report, /\n50 more errors were truncated$/)
  })
})

describe('compiled CEL expression', () => {
  it('lists the variables that it uses, also in macros', () => {
    const compiled = environment.compile('l.all(x, x > i) && a.b')
    assert.ok(compiled.issues === undefined)
    assert.deepEqual(
      ['l', 'i', 'a.b', 's', 'm'].map((name) => compiled.uses(name)),
      [true, true, true, false, false],
    )
  })

  it('may use variables of an extended environment', () => {
    const extended = environment.extend({ more: STRING })
    assert.equal(extended.compile('more + s').issues, undefined)
    assert.notEqual(environment.compile('more + s').issues, undefined)
  })

  it('is checked in linear time for an expression with many operands', () => {
    assert.equal(typeOf(`[${'l.map(x, [x, i]).size() + m.x,'.repeat(2000)}]`), 'list(int)')
  })
})
