import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { parseJson, stringifyJson } from '../json/json.ts'
import { YamlError } from './error.ts'
import { parseYaml, parseYamlAll, splitYaml, stringifyYaml } from './yaml.ts'

/** The JSON that sigs.k8s.io/yaml 1.6.0 makes of it. */
const READ: readonly (readonly [yaml: string, json: string])[] = [
  ['', 'null'],
  ['# only a comment', 'null'],
  ['a: [y, Y, yes, Yes, YES, on, On, ON, true, True, TRUE]', `{"a":[${Array(11).fill('true').join(',')}]}`],
  ['a: [n, N, no, No, NO, off, Off, OFF, false, False, FALSE]', `{"a":[${Array(11).fill('false').join(',')}]}`],
  ['a: [yES, oN, tRUE, nULL]', '{"a":["yES","oN","tRUE","nULL"]}'],
  ['a: ~\nb: null\nc: Null\nd: NULL\ne:\nf: ""', '{"a":null,"b":null,"c":null,"d":null,"e":null,"f":""}'],
  ['[0x1F, 0o14, 014, 0b11, 1_000, 08, -0x1, +5, -0]', '[31,12,12,3,1000,8,-1,5,0]'],
  ['[0x, 0o8, 0b2, 1e, _1, --1, 0x1G]', '["0x","0o8","0b2","1e","_1","--1","0x1G"]'],
  ['[1.0, 1., .5, -.5, 1e3, 1.5e-3, 1e400]', '[1,1,0.5,-0.5,1000,0.0015,"1e400"]'],
  [
    '[12:30:45, 190:20:30, 2020-01-01, 2020-01-01T00:00:00Z]',
    '["12:30:45","190:20:30","2020-01-01","2020-01-01T00:00:00Z"]',
  ],
  [
    '[9223372036854775807, -9223372036854775808, 9007199254740993]',
    '[9223372036854775807,-9223372036854775808,9007199254740993]',
  ],
  ['[18446744073709551615, 18446744073709551616]', '[18446744073709551615,18446744073709552000]'],
  ["a: \"\\u00e9\\x41\\t\"\nb: 'it''s'", '{"a":"éA\\t","b":"it\'s"}'],
  ['a: |\n  x\n  y\nb: >-\n  x\n  y\n\n  z\nc: |+\n  x\n\n', '{"a":"x\\ny\\n","b":"x y\\nz","c":"x\\n\\n"}'],
  ['a: [\n1,\n2\n]\nb: "x\ny"', '{"a":[1,2],"b":"x y"}'],
  ['1: a\ntrue: b\n1.5: c\n0.1: d\n1e6: e\n.inf: f', '{".inf":"f","0.1":"d","1":"a","1.5":"c","1e+06":"e","true":"b"}'],
  ['a: &x {b: 1}\nc: *x\nd: *x', '{"a":{"b":1},"c":{"b":1},"d":{"b":1}}'],
  ['a: &x 1\nb: *x\nc: &x 2\nd: *x', '{"a":1,"b":1,"c":2,"d":2}'],
  ['b: &b {x: 1, z: 2}\nd:\n  <<: *b\n  z: 3', '{"b":{"x":1,"z":2},"d":{"x":1,"z":3}}'],
  ['b: &b {x: 1}\nd:\n  x: 5\n  <<: *b', '{"b":{"x":1},"d":{"x":1}}'],
  ['<<: [{a: 1}, {a: 2, b: 3}]\nc: 1', '{"a":1,"b":3,"c":1}'],
  ['"<<": 1', '{"\\u003c\\u003c":1}'],
  [
    'a: !!str 1\nb: !!int "3"\nc: !!float 3\nd: !foo bar\ne: !!binary aGVsbG8=\nf: ! 5',
    '{"a":"1","b":3,"c":3,"d":"bar","e":"hello","f":"5"}',
  ],
  ['a: !<tag:yaml.org,2002:int> 3\nb: !!timestamp 2020-01-01\nc: !!null ""', '{"a":3,"b":"2020-01-01","c":null}'],
  ['a: 1\n---\nb: 2\n---\n{broken', '{"a":1}'],
  ['# c\n---\na: 1\n...\nb: 2', '{"a":1}'],
  ['%YAML 1.1\n---\na: y', '{"a":true}'],
  ['---\n---\na: 1', 'null'],
  ['a: 1\r\nb:\r\n  c: x\r\n', '{"a":1,"b":{"c":"x"}}'],
  ['\ufeffa: 1', '{"a":1}'],
  ['{"a":1,"b":[1,{"c":null}],"d":"\\u0041"}', '{"a":1,"b":[1,{"c":null}],"d":"A"}'],
  [
    'a: http://x.y/z?a=b#c\nb: 10.0.0.0/8\nc: fe80::1\nd: 100m',
    '{"a":"http://x.y/z?a=b#c","b":"10.0.0.0/8","c":"fe80::1","d":"100m"}',
  ],
  ['__proto__: {x: 1}\nconstructor: 2', '{"__proto__":{"x":1},"constructor":2}'],
]

/** Its error texts. */
const REFUSED: readonly (readonly [yaml: string, message: string])[] = [
  ['a: b: c', 'yaml: mapping values are not allowed in this context'],
  ['a: 1\nb: c: d', 'yaml: line 2: mapping values are not allowed in this context'],
  ['a: 1\n  b: 2', 'yaml: line 2: mapping values are not allowed in this context'],
  ['a:\n\tb: 1', 'yaml: line 2: found character that cannot start any token'],
  ['a:\n    b: 1\n  c: 2', 'yaml: line 2: did not find expected key'],
  ['a: b\nc', "yaml: line 3: could not find expected ':'"],
  ['- a\nb: 1', "yaml: line 1: did not find expected '-' indicator"],
  ['a: @x', 'yaml: found character that cannot start any token'],
  ['a: - b', 'yaml: block sequence entries are not allowed in this context'],
  ['a: "\\q"', 'yaml: found unknown escape character'],
  ['a: "x', 'yaml: found unexpected end of stream'],
  ['a: *nope', "yaml: unknown anchor 'nope' referenced"],
  ['a: &a [*a]', "yaml: anchor 'a' value contains itself"],
  ['a: &a {b: *a}', "yaml: anchor 'a' value contains itself"],
  ['d: {<<: 1}', 'yaml: map merge requires map or sequence of maps as the value'],
  ['a: !!int x', 'yaml: cannot decode !!str `x` as a !!int'],
  ['a: !!binary "@@"', 'yaml: !!binary value contains invalid base64 data'],
  ['a: .nan', 'json: unsupported value: NaN'],
  ['a: -.inf', 'json: unsupported value: -Inf'],
]

describe('parseYaml', () => {
  it('parses documents as go-yaml does, from text and bytes', () => {
    for (const [yaml, json] of READ) {
      assert.equal(stringifyJson(parseYaml(yaml), { sortedKeys: true }), json, yaml)
      assert.equal(stringifyJson(parseYaml(Buffer.from(yaml)), { sortedKeys: true }), json, yaml)
    }
  })

  it('rejects documents that go-yaml rejects, with its errors', () => {
    for (const [yaml, message] of REFUSED) assert.throws(() => parseYaml(yaml), { name: 'YamlError', message }, yaml)
  })

  it('reports repeated keys with their line', () => {
    const cases: readonly (readonly [string, readonly string[]])[] = [
      ['kind: ConfigMap\ndata:\n  a: "1"\n  a: "2"\n', ['line 4: key "a" already set in map']],
      ['a: 1\n\n\na: 2\na: 3', ['line 4: key "a" already set in map', 'line 5: key "a" already set in map']],
      ['1: a\n1: b\n"1": c', ['line 2: key 1 already set in map']],
      ['true: 1\nyes: 2', ['line 2: key true already set in map']],
      ['a: |\n x\na: |\n y\n', ['line 3: key "a" already set in map']],
      ['a:\n  b: 1\na:\n  b: 2', ['line 4: key "a" already set in map']],
      ['a:\na:\nb: 1', ['line 2: key "a" already set in map']],
      ['b: &b {x: 1}\nd:\n  x: 5\n  <<: *b', ['line 1: key "x" already set in map']],
      ['a: 1\nb: {a: 1}', []],
    ]
    for (const [yaml, expected] of cases) {
      const duplicates: string[] = []
      parseYaml(yaml, { duplicates })
      assert.deepEqual(duplicates, expected, yaml)
    }
  })

  it('creates a separate copy for each alias', () => {
    const value = parseYaml('a: &x {b: []}\nc: *x') as { a: { b: number[] }; c: { b: number[] } }
    value.a.b.push(1)
    assert.deepEqual(value.c, { b: [] })
  })

  it('accepts flow collections that continue to the left of their key', () => {
    const lines = Array.from({ length: 100 }, (_, index) => `${index},`)
    assert.deepEqual(parseYaml(`a:\n  b: [\n${lines.join('\n')}\n]\nc: {\n}`), {
      a: { b: lines.map((_, index) => index) },
      c: {},
    })
  })

  it('limits the number of aliases, the depth and the size', () => {
    const names = 'abcdefghi'.split('')
    const laughs = names.map(
      (name, index) =>
        `${name}: &${name} [${Array(9)
          .fill(index === 0 ? 'lol' : `*${names[index - 1]}`)
          .join(',')}]`,
    )
    assert.throws(() => parseYaml(laughs.join('\n')), {
      code: 'limit',
      message: 'yaml: document contains excessive aliasing',
    })
    const merges = names.map(
      (name, index) =>
        `${name}: &${name}\n  <<: [${Array(9)
          .fill(index === 0 ? '{x: 1}' : `*${names[index - 1]}`)
          .join(',')}]`,
    )
    assert.throws(() => parseYaml(merges.join('\n')), { code: 'limit' })
    assert.throws(() => parseYaml('['.repeat(100_000)), { code: 'depth' })
    assert.throws(() => parseYaml(`a: ${'- '.repeat(5_000)}`), YamlError)
    assert.throws(() => parseYaml('a: 1', { maxLength: 3 }), { code: 'limit' })
  })
})

describe('YAML streams', () => {
  it('are split at lines of three dashes, without empty documents', () => {
    assert.deepEqual(parseYamlAll('a: 1\n---\n\n---\n# nothing\n--- \nb: 2\n---'), [{ a: 1 }, { b: 2 }])
    assert.deepEqual(parseYamlAll('---\na: |\n  ---\n  x\n---\r\nb: "--- "\n'), [{ a: '---\nx\n' }, { b: '--- ' }])
    assert.deepEqual(splitYaml('a\n--- # not here\nb\n---\nc'), ['a\n--- # not here\nb\n', 'c'])
  })
})

/** The output of sigs.k8s.io/yaml 1.6.0. */
const SCALARS: readonly (readonly [text: string, yaml: string])[] = [
  ['', '""'],
  ['a', 'a'],
  ['true', '"true"'],
  ['yes', '"yes"'],
  ['y', '"y"'],
  ['No', '"No"'],
  ['off', '"off"'],
  ['tRUE', 'tRUE'],
  ['null', '"null"'],
  ['~', '"~"'],
  ['1', '"1"'],
  ['-1', '"-1"'],
  ['1.5', '"1.5"'],
  ['1e3', '"1e3"'],
  ['1e400', '1e400'],
  ['0x1F', '"0x1F"'],
  ['0o14', '"0o14"'],
  ['1_000', '"1_000"'],
  ['.inf', '".inf"'],
  ['2020-01-01', '"2020-01-01"'],
  ['2020-02-30', '2020-02-30'],
  ['2020-01-01T00:00:00Z', '"2020-01-01T00:00:00Z"'],
  ['2020-01-01T24:00:00Z', '2020-01-01T24:00:00Z'],
  ['12:30:45', '"12:30:45"'],
  ['1:60', '1:60'],
  ['10.0.0.1', '10.0.0.1'],
  ['100m', '100m'],
  ['fe80::1', 'fe80::1'],
  ['::1', '::1'],
  ['a: b', "'a: b'"],
  ['a:b', 'a:b'],
  ['a:', "'a:'"],
  ['a #b', "'a #b'"],
  ['a#b', 'a#b'],
  ['#a', "'#a'"],
  ['- a', "'- a'"],
  ['-a', '-a'],
  ['-', "'-'"],
  ['?a', '?a'],
  ['---', "'---'"],
  ['{"a":1}', `'{"a":1}'`],
  ['*', "'*'"],
  ['&a', "'&a'"],
  ['!a', "'!a'"],
  ['%a', "'%a'"],
  ['@a', "'@a'"],
  ['`a', "'`a'"],
  ["it's", "it's"],
  ["'a", "'''a'"],
  ['"a"', `'"a"'`],
  ['a"b', 'a"b'],
  [' a', "' a'"],
  ['a ', "'a '"],
  ['a\tb', String.raw`"a\tb"`],
  ['a\rb', String.raw`"a\rb"`],
  ['\0\u001b\u007f', String.raw`"\0\e\x7F"`],
  ['é日本', 'é日本'],
  ['😀', String.raw`"\U0001F600"`],
  ['\ufeff', String.raw`"\uFEFF"`],
  ['<<', '<<'],
  ['=', '='],
  ['a\nb', '|-\n  a\n  b'],
  ['a\n', '|\n  a'],
  ['a\n\n', '|+\n  a\n'],
  ['\na', '|2-\n\n  a'],
  [' a\nb', '|2-\n   a\n  b'],
  ['a\n\nb\n', '|\n  a\n\n  b'],
  ['a \nb', String.raw`"a \nb"`],
  ['a\nb ', String.raw`"a\nb "`],
  ['a\tb\nc', String.raw`"a\tb\nc"`],
]

const DOCUMENTS: readonly (readonly [json: string, yaml: string])[] = [
  ['{}', '{}\n'],
  ['[]', '[]\n'],
  ['null', 'null\n'],
  ['["a",["b",["c"]],{"x":1,"y":[1]},[]]', '- a\n- - b\n  - - c\n- x: 1\n  "y":\n  - 1\n- []\n'],
  [
    '{"a":null,"b":[],"c":{},"d":[{}],"e":[[]],"f":[{"b":2,"a":1}]}',
    'a: null\nb: []\nc: {}\nd:\n- {}\ne:\n- []\nf:\n- a: 1\n  b: 2\n',
  ],
  ['{"k":["a\\nb\\n"],"m":{"o":"x\\ny"}}', 'k:\n- |\n  a\n  b\nm:\n  o: |-\n    x\n    y\n'],
  ['{"multi\\nline":{"a":1},"":2,"yes":[1]}', '"": 2\n? |-\n  multi\n  line\n: a: 1\n"yes":\n- 1\n'],
  [
    '{"a10":1,"a2":2,"A":3,"b":4,"_":5,"1":6,"a":7,"a-b":8,"a.b":9}',
    '_: 5\n"1": 6\nA: 3\na: 7\na-b: 8\na.b: 9\na2: 2\na10: 1\nb: 4\n',
  ],
  [
    '[1.5,1e21,1e20,123456789.5,0.00001,-0.0001,1000000,9223372036854775807,100000.5]',
    '- 1.5\n- 1e+21\n- 1e+20\n- 1.234567895e+08\n- 1e-05\n- -0.0001\n- 1000000\n- 9223372036854775807\n- 100000.5\n',
  ],
]

describe('stringifyYaml', () => {
  it('quotes a string exactly if go-yaml does', () => {
    for (const [text, yaml] of SCALARS) assert.equal(stringifyYaml(text), `${yaml}\n`, JSON.stringify(text))
  })

  it('formats documents as go-yaml does', () => {
    for (const [json, yaml] of DOCUMENTS) assert.equal(stringifyYaml(parseJson(json)), yaml, json)
  })

  it('folds long lines at single spaces, but never keys nor literal blocks', () => {
    const long = `${'word '.repeat(20)}end`
    assert.equal(
      stringifyYaml({ a: long, b: [`'${long}`] }),
      `a: ${'word '.repeat(15)}word\n  word word word word end\nb:\n- '''${'word '.repeat(15)}word\n  word word word word end'\n`,
    )
    assert.equal(stringifyYaml({ [`${'k '.repeat(60)}k`]: 1 }), `${'k '.repeat(60)}k: 1\n`)
    assert.equal(stringifyYaml({ ['x'.repeat(129)]: 1 }), `? ${'x'.repeat(129)}\n: 1\n`)
    assert.equal(stringifyYaml({ a: `${long}\n` }), `a: |\n  ${long}\n`)
  })

  it('writes text that parseYaml parses to the same value', () => {
    const text = fc.array(
      fc.constantFrom(
        'a',
        ' ',
        '\n',
        ':',
        '#',
        '-',
        "'",
        '"',
        '1',
        '.',
        'é',
        '😀',
        '\t',
        'yes',
        '{',
        '\\',
        '\u2028',
        'x'.repeat(40),
      ),
    )
    const word = text.map((parts) => parts.join(''))
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        word,
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
        fc.constantFrom(null, true, false, 2n ** 62n, {}, []),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(word, tie('value'), { maxKeys: 4 }),
      ),
    }))
    fc.assert(
      fc.property(fc.array(value), (given) => {
        const json = stringifyJson(given, { sortedKeys: true })
        assert.equal(stringifyJson(parseYaml(stringifyYaml(given)), { sortedKeys: true }), json)
      }),
      { numRuns: 300 },
    )
  })

  it('rejects a value that contains itself', () => {
    const loop: unknown[] = []
    loop.push(loop)
    assert.throws(() => stringifyYaml(loop), { code: 'depth' })
  })
})
