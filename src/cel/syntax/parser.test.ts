import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { Expression, LiteralValue } from './ast.ts'
import { TOKEN_KINDS } from './lexer.ts'
import { parse } from './parser.ts'
import { report } from './source.ts'

/** A tree as a text in which every node shows. */
function show(node: Expression): string {
  switch (node.kind) {
    case 'literal':
      return showLiteral(node.value)
    case 'identifier':
      return node.name
    case 'select':
      return `${show(node.operand)}.${node.field}${node.isTest ? '~' : ''}`
    case 'call': {
      const args = node.args.map((arg) => show(arg)).join(', ')
      return node.target === undefined ? `${node.function}(${args})` : `${show(node.target)}.${node.function}(${args})`
    }
    case 'list':
      return `[${node.elements.map((element, i) => (node.optional.has(i) ? '?' : '') + show(element)).join(', ')}]`
    case 'map':
      return `{${node.entries.map((entry) => `${entry.isOptional ? '?' : ''}${show(entry.key)}: ${show(entry.value)}`).join(', ')}}`
    case 'message':
      return `${node.typeName}{${node.fields.map((field) => `${field.isOptional ? '?' : ''}${field.field}: ${show(field.value)}`).join(', ')}}`
    case 'comprehension': {
      const variables = [node.variable, node.variable2].filter((name) => name !== undefined).join(', ')
      const parts = [node.initial, node.condition, node.step, node.result].map((part) => show(part)).join('; ')
      return `fold(${variables} of ${show(node.range)}; ${node.accumulator} = ${parts})`
    }
  }
}

function showLiteral(value: LiteralValue): string {
  switch (value.type) {
    case 'null':
      return 'null'
    case 'uint':
      return `${value.value}u`
    case 'string':
      return JSON.stringify(value.value)
    case 'bytes':
      return `b[${[...value.value].join(' ')}]`
    case 'double':
      return `d${Object.is(value.value, -0) ? '-0' : value.value}`
    default:
      return String(value.value)
  }
}

function parsed(source: string): string {
  const { tree, findings } = parse(source)
  return tree === undefined ? report(source, findings).report : show(tree.root)
}

function messages(source: string): readonly string[] {
  const { findings } = parse(source)
  assert.ok(findings, `${source} parses`)
  return report(source, findings).issues.map(({ line, column, message }) => `${line}:${column} ${message}`)
}

const EXPRESSION = `{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`

describe('parser of CEL expressions', () => {
  const table: readonly (readonly [source: string, tree: string])[] = [
    ['1 + 2 * 3 - 4', '_-_(_+_(1, _*_(2, 3)), 4)'],
    ['a < b == c', '_==_(_<_(a, b), c)'],
    ['a in b ? c : d ? e : f', '_?_:_(@in(a, b), c, _?_:_(d, e, f))'],
    ['a || b && c', '_||_(a, _&&_(b, c))'],
    ['!a', '!_(a)'],
    ['!!a', 'a'],
    ['---a', '-_(a)'],
    ['-1', '-1'],
    ['- 1', '-1'],
    ['--1', '1'],
    ['1 - 1', '_-_(1, 1)'],
    ['1 -1', '_-_(1, 1)'],
    ['-x.y', '-_(x.y)'],
    ['a.b.c(d)[e]', '_[_](a.b.c(d), e)'],
    ['.a.b', '.a.b'],
    ['f()', 'f()'],
    ['a.?b[?c]', '_[?_](_?._(a, "b"), c)'],
    ['[1, ?a, 2,]', '[1, ?a, 2]'],
    ['[,]', '[]'],
    ["{'a': 1, ?b: c,}", '{"a": 1, ?b: c}'],
    ['a.b.C{x: 1, ?y: z}', 'a.b.C{x: 1, ?y: z}'],
    ['.C{}', '.C{}'],
    ['a.if', 'a.if'],
    ['a // to the end\n + b', '_+_(a, b)'],
    ['1.foo', '1.foo'],
  ]
  for (const [source, tree] of table) {
    it(`parses ${source}`, () => {
      assert.equal(parsed(source), tree)
    })
  }

  it('balances chains of logical operators into a tree of small depth', () => {
    assert.equal(parsed('a && b && c && d && e'), '_&&_(_&&_(_&&_(a, b), c), _&&_(d, e))')
  })
})

describe('parser of CEL literals', () => {
  const table: readonly (readonly [source: string, value: string])[] = [
    ['0x1F', '31'],
    ['-0x1f', '-31'],
    ['18446744073709551615u', '18446744073709551615u'],
    ['0xffU', '255u'],
    ['-9223372036854775808', '-9223372036854775808'],
    ['.5e-1', 'd0.05'],
    ['1e3', 'd1000'],
    ['-0.0', 'd-0'],
    [String.raw`'\a\b\f\n\r\t\v\"\'\\\?\`'`, JSON.stringify('\u0007\b\f\n\r\t\v"\'\\?`')],
    [String.raw`'\x41\X42\u00e9\U0001F600\101'`, '"ABé😀A"'],
    [String.raw`r'\n'`, String.raw`"\\n"`],
    ["'''a\n'b'\r\nc'''", String.raw`"a\n'b'\nc"`],
    ['"""a"b"""', String.raw`"a\"b"`],
    ["''''''", '""'],
    [String.raw`b'\xff\101é'`, 'b[255 65 195 169]'],
    [String.raw`br'\x'`, 'b[92 120]'],
    ["B'a'", 'b[97]'],
    ["'😀'", '"😀"'],
  ]
  for (const [source, value] of table) {
    it(`parses ${source}`, () => {
      assert.equal(parsed(source), value)
    })
  }

  const bad: readonly (readonly [source: string, message: string])[] = [
    ['9223372036854775808', '1:0 invalid int literal'],
    ['18446744073709551616u', '1:0 invalid uint literal'],
    ['1 + 1e400', '1:4 invalid double literal'],
    [String.raw`'\ud800'`, '1:0 invalid unicode code point'],
    [String.raw`b'\u00e9'`, '1:0 unable to unescape string'],
  ]
  for (const [source, message] of bad) {
    it(`rejects ${source}`, () => {
      assert.deepEqual(messages(source), [message])
    })
  }
})

describe('parser of CEL macros', () => {
  const table: readonly (readonly [source: string, tree: string])[] = [
    ['has(a.b)', 'a.b~'],
    ['l.all(x, p)', 'fold(x of l; @result = true; @not_strictly_false(@result); _&&_(@result, p); @result)'],
    ['l.exists(x, p)', 'fold(x of l; @result = false; @not_strictly_false(!_(@result)); _||_(@result, p); @result)'],
    ['l.exists_one(x, p)', 'fold(x of l; @result = 0; true; _?_:_(p, _+_(@result, 1), @result); _==_(@result, 1))'],
    ['l.map(x, y)', 'fold(x of l; @result = []; true; _+_(@result, [y]); @result)'],
    ['l.map(x, p, y)', 'fold(x of l; @result = []; true; _?_:_(p, _+_(@result, [y]), @result); @result)'],
    ['l.filter(x, p)', 'fold(x of l; @result = []; true; _?_:_(p, _+_(@result, [x]), @result); @result)'],
    ['m.all(k, v, p)', 'fold(k, v of m; @result = true; @not_strictly_false(@result); _&&_(@result, p); @result)'],
    ['m.transformList(k, v, y)', 'fold(k, v of m; @result = []; true; _+_(@result, [y]); @result)'],
    ['m.transformMap(k, v, y)', 'fold(k, v of m; @result = {}; true; cel.@mapInsert(@result, k, y); @result)'],
    [
      'm.transformMapEntry(k, v, p, e)',
      'fold(k, v of m; @result = {}; true; _?_:_(p, cel.@mapInsert(@result, e), @result); @result)',
    ],
    [
      'o.optMap(x, y)',
      '_?_:_(o.hasValue(), optional.of(fold(#unused of []; x = o.value(); false; x; y)), optional.none())',
    ],
    ['o.optFlatMap(x, y)', '_?_:_(o.hasValue(), fold(#unused of []; x = o.value(); false; x; y), optional.none())'],
    [
      'l.sortBy(x, y)',
      'fold(#unused of []; @__sortBy_input__ = l; false; @__sortBy_input__; @__sortBy_input__.@sortByAssociatedKeys(' +
        'fold(x of @__sortBy_input__; @result = []; true; _+_(@result, [y]); @result)))',
    ],
    ['l.all(x)', 'l.all(x)'],
    ['has(a, b)', 'has(a, b)'],
    ['all(x, p)', 'all(x, p)'],
  ]
  for (const [source, tree] of table) {
    it(`expands ${source}`, () => {
      assert.equal(parsed(source), tree)
    })
  }

  const bad: readonly (readonly [source: string, message: string])[] = [
    ['has(a)', '1:4 invalid argument to has() macro'],
    ['l.all(1, p)', '1:6 argument must be a simple name'],
    ['l.map(a.b, p)', '1:7 argument is not an identifier'],
    ['l.filter(__result__, p)', '1:9 iteration variable overwrites accumulator variable'],
    ['l.all(i, i, p)', '1:9 duplicate variable name: i'],
    ['o.optMap(1, x)', '1:9 optMap() variable name must be a simple identifier'],
    [
      '1.sortBy(x, x)',
      '1:0 sortBy can only be applied to a list, identifier, comprehension, call or select expression',
    ],
  ]
  for (const [source, message] of bad) {
    it(`rejects ${source}`, () => {
      assert.deepEqual(messages(source), [message])
    })
  }

  it('limits macros that copy their target', () => {
    const source = `o${'.optMap(x, x)'.repeat(60)}`
    assert.match(messages(source)[0] ?? '', /exceeds limit of \d+ nodes/)
  })
})

describe('syntax error of a CEL expression', () => {
  const table: readonly (readonly [source: string, ...found: string[]])[] = [
    ['', `1:-1 Syntax error: mismatched input '<EOF>' expecting ${EXPRESSION}`],
    ['1 +', `1:3 Syntax error: mismatched input '<EOF>' expecting ${EXPRESSION}`],
    ['(1', `1:2 Syntax error: missing ')' at '<EOF>'`],
    ['1)', `1:1 Syntax error: extraneous input ')' expecting <EOF>`],
    ['a b c', `1:2 Syntax error: mismatched input 'b' expecting <EOF>`],
    ["{'a' 1}", `1:5 Syntax error: missing ':' at '1'`],
    ['[1 2]', `1:3 Syntax error: extraneous input '2' expecting {']', ','}`],
    ['f(a b)', `1:4 Syntax error: extraneous input 'b' expecting ')'`],
    ['f(+)', `1:2 Syntax error: extraneous input '+' expecting ${EXPRESSION.replace("'(', ", "'(', ')', ")}`],
    ['a ? b ? c : d : e', `1:6 Syntax error: mismatched input '?' expecting ':'`],
    ['1.', `1:2 Syntax error: no viable alternative at input '.'`],
    [
      '- )',
      `1:2 Syntax error: no viable alternative at input '- )'`,
      `1:2 Syntax error: mismatched input ')' expecting ${EXPRESSION}`,
    ],
    ['!-x', `1:2 Syntax error: no viable alternative at input '-x'`],
    ['m.true', `1:2 Syntax error: mismatched input 'true' expecting IDENTIFIER`],
    ['`a`', `1:0 Syntax error: mismatched input '\`a\`' expecting ${EXPRESSION}`],
    ['m.`a`', "1:2 unsupported syntax: '`'"],
    ['x{.', `1:2 Syntax error: mismatched input '.' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}`],
    [
      'a = b',
      `1:2 Syntax error: token recognition error at: '= '`,
      `1:4 Syntax error: extraneous input 'b' expecting <EOF>`,
    ],
    [
      "'unterminated",
      `1:0 Syntax error: token recognition error at: ''unterminated'`,
      `1:13 Syntax error: mismatched input '<EOF>' expecting ${EXPRESSION}`,
    ],
    [
      String.raw`'a\qb'`,
      String.raw`1:0 Syntax error: token recognition error at: ''a\q'`,
      `1:5 Syntax error: token recognition error at: '''`,
    ],
    [
      'm.in == 1',
      `1:2 Syntax error: no viable alternative at input '.in'`,
      `1:5 Syntax error: extraneous input '==' expecting ${EXPRESSION}`,
    ],
    [
      'has(a?b) + 1e400 +',
      '1:5 invalid argument to has() macro',
      `1:7 Syntax error: mismatched input ')' expecting ':'`,
      '1:11 invalid double literal',
      `1:18 Syntax error: mismatched input '<EOF>' expecting ${EXPRESSION}`,
    ],
    [
      'a.?1',
      `1:3 Syntax error: mismatched input '1' expecting {IDENTIFIER, ESC_IDENTIFIER}`,
      '1:3 unsupported ident kind',
    ],
    ['l.all(1, x) )', '1:6 argument must be a simple name', `1:12 Syntax error: extraneous input ')' expecting <EOF>`],
    [
      'if(1) + [while, 1e400] + F{a: 99999999999999999999} (',
      '1:0 reserved identifier: if',
      '1:9 reserved identifier: while',
      '1:16 invalid double literal',
      '1:30 invalid int literal',
      `1:52 Syntax error: extraneous input '(' expecting <EOF>`,
    ],
    ['if + while', '1:0 reserved identifier: if', '1:5 reserved identifier: while'],
    ['.for(1)', '1:0 reserved identifier: for'],
  ]
  for (const [source, ...found] of table) {
    it(`is the same as upstream's for ${JSON.stringify(source)}`, () => {
      assert.deepEqual(messages(source), found)
    })
  }

  it('is marked below the source line, with wide dots below wide characters', () => {
    assert.equal(
      parsed("true &&\n\t'日本😀' + "),
      `ERROR: <input>:2:10: Syntax error: mismatched input '<EOF>' expecting ${EXPRESSION}\n |  '日本😀' + \n | ..．．．....^`,
    )
    assert.equal(parsed('1 é'), `ERROR: <input>:1:3: Syntax error: token recognition error at: 'é'\n | 1 é\n | ..＾`)
  })
})

describe('parse() of the CEL parser', () => {
  const pieces = fc.constantFrom(
    ...TOKEN_KINDS.filter((kind) => kind !== 'EOF'),
    ' ',
    '\n',
    "'a'",
    '1',
    '"""',
    '\\',
    'é',
    '😀',
  )
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(pieces, { maxLength: 40 }).map((list) => list.join('')),
  )

  it('accepts any text, or reports errors at positions within it', () => {
    fc.assert(
      fc.property(texts, (source) => {
        const { tree, findings } = parse(source)
        if (tree !== undefined) return
        assert.notEqual(findings.length, 0)
        const lines = source.split('\n')
        for (const { line, column } of report(source, findings).issues) {
          assert.ok(column <= Array.from(lines[line - 1] ?? '').length)
        }
      }),
      { numRuns: 500 },
    )
  })
})

describe('limits of a CEL expression', () => {
  const nested = (depth: number): string => `${'('.repeat(depth)}1${')'.repeat(depth)}`
  const table: readonly (readonly [name: string, source: string, message?: string])[] = [
    ['249 parentheses', nested(249)],
    ['250 parentheses', nested(250), 'expression recursion limit exceeded: 250'],
    ['250 selections', `a${'.b'.repeat(250)}`],
    ['251 selections', `a${'.b'.repeat(251)}`, 'max recursion depth exceeded'],
    ['251 terms', `1${' + 1'.repeat(250)}`],
    ['252 terms', `1${' + 1'.repeat(251)}`, 'max recursion depth exceeded'],
    ['2000 terms of logic', `a${' && a'.repeat(1999)}`],
    ['100,000 code points', `'${'é'.repeat(99_998)}'`],
    [
      '100,001 code points',
      `'${'😀'.repeat(99_999)}'`,
      'expression code point size exceeds limit: size: 100001, limit 100000',
    ],
    ['deep text that is wrong', '('.repeat(300), 'expression recursion limit exceeded: 250'],
  ]
  for (const [name, source, message] of table) {
    it(`${message === undefined ? 'allow' : 'reject'} ${name}`, () => {
      const { findings } = parse(source)
      assert.deepEqual(findings, message === undefined ? undefined : [{ at: undefined, message }])
    })
  }

  it('accept long lists', () => {
    assert.equal(parse(`[${'1,'.repeat(49_000)}]`).findings, undefined)
  })
})
