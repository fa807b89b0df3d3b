import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { createSeededRandom } from '../random.ts'
import { type JsonParseOptions, parseJson, readJson, stringifyJson } from './json.ts'
import { DEFAULT_JSON_LIMITS, scanJson } from './scan.ts'
import { type JsonDuplicate, JsonError, JsonNumber, type JsonObject } from './value.ts'
import { compareUtf8 } from './write.ts'

function refusal(text: string | Buffer, options?: JsonParseOptions): JsonError {
  try {
    parseJson(text, options)
  } catch (error) {
    if (error instanceof JsonError) return error
    throw error
  }
  return assert.fail(`accepted ${text.toString('utf8').slice(0, 80)}`)
}

function duplicatesOf(text: string): JsonDuplicate[] {
  const duplicates: JsonDuplicate[] = []
  parseJson(text, { duplicates })
  return duplicates
}

/** The results of Go's encoding/json (as sigs.k8s.io/json), recorded from a run. */
const SYNTAX: readonly (readonly [text: string, message: string])[] = [
  ['', 'unexpected end of JSON input'],
  [' \n', 'unexpected end of JSON input'],
  ['x', "invalid character 'x' looking for beginning of value"],
  ['{', 'unexpected end of JSON input'],
  ['{"a"', 'unexpected end of JSON input'],
  ['{"a":', 'unexpected end of JSON input'],
  ['{"a":1', 'unexpected end of JSON input'],
  ['{"a":1,', 'unexpected end of JSON input'],
  ['"abc', 'unexpected end of JSON input'],
  ['{"a":1}}', "invalid character '}' after top-level value"],
  ['{"a":1} x', "invalid character 'x' after top-level value"],
  ['{,', "invalid character ',' looking for beginning of object key string"],
  ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
  ["{'a':1}", "invalid character '\\'' looking for beginning of object key string"],
  ['{a:1}', "invalid character 'a' looking for beginning of object key string"],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{"a":1]', "invalid character ']' after object key:value pair"],
  ['{"a":1 "b":2}', `invalid character '"' after object key:value pair`],
  ['[1}', "invalid character '}' after array element"],
  ['[1,]', "invalid character ']' looking for beginning of value"],
  ['[1 2]', "invalid character '2' after array element"],
  ['{"a":}', "invalid character '}' looking for beginning of value"],
  [']', "invalid character ']' looking for beginning of value"],
  ['"a\nb"', "invalid character '\\n' in string literal"],
  ['"a\u0000b"', "invalid character '\\x00' in string literal"],
  ['"\\x"', "invalid character 'x' in string escape code"],
  ['"\\', "invalid character ' ' in string escape code"],
  ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"],
  ['-', "invalid character ' ' in numeric literal"],
  ['-x', "invalid character 'x' in numeric literal"],
  ['01', "invalid character '1' after top-level value"],
  ['[01]', "invalid character '1' after array element"],
  ['{"a":00}', "invalid character '0' after object key:value pair"],
  ['1.', "invalid character ' ' after decimal point in numeric literal"],
  ['[1.]', "invalid character ']' after decimal point in numeric literal"],
  ['1ex', "invalid character 'x' in exponent of numeric literal"],
  ['+1', "invalid character '+' looking for beginning of value"],
  ['.5', "invalid character '.' looking for beginning of value"],
  ['NaN', "invalid character 'N' looking for beginning of value"],
  ['nul', "invalid character ' ' in literal null (expecting 'l')"],
  ['trux', "invalid character 'x' in literal true (expecting 'e')"],
  ['fals}', "invalid character '}' in literal false (expecting 'e')"],
  ['\ufeff{}', "invalid character 'ï' looking for beginning of value"],
  ['é', "invalid character 'Ã' looking for beginning of value"],
  ['\u0007', "invalid character '\\a' looking for beginning of value"],
  ['\u007f', "invalid character '\\x7f' looking for beginning of value"],
  ['\\', "invalid character '\\\\' looking for beginning of value"],
  ['/* no */ {}', "invalid character '/' looking for beginning of value"],
]

describe('parseJson', () => {
  it("rejects invalid JSON with Go's errors, as text and as bytes", () => {
    for (const [text, message] of SYNTAX) {
      for (const input of [text, Buffer.from(text)]) {
        const error = refusal(input)
        assert.equal(error.message, message, JSON.stringify(text))
        assert.equal(error.code, 'syntax')
      }
    }
  })

  it('agrees with JSON.parse on ordinary documents', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), fc.boolean(), (text, pretty) => {
        const plain = JSON.stringify(JSON.parse(text), undefined, pretty ? 2 : 0).replaceAll('-0', '0')
        if (/[\d.]e|\d{16}/.test(plain)) return
        assert.deepEqual(parseJson(plain), JSON.parse(plain))
        assert.deepEqual(parseJson(Buffer.from(plain)), JSON.parse(plain))
      }),
    )
  })

  it('gives the same value with the exact and the native parser', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        const expected = JSON.parse(JSON.stringify(JSON.parse(text)))
        if (/\d{16}|-0/.test(text)) return
        // An exponent makes the text odd without making it unusual.
        assert.deepEqual(parseJson(`[${text},1e0]`), [expected, 1])
      }),
    )
  })

  it('keeps every int64 exact', () => {
    const random = createSeededRandom(64)
    for (let round = 0; round < 100_000; round++) {
      const bits = BigInt.asIntN(64, random.bytes(8).readBigUInt64LE() >> BigInt(random.int(64)))
      const value = round % 2 === 0 ? bits : -bits
      if (BigInt.asIntN(64, value) !== value) continue
      const text = value.toString()
      const read = parseJson(text)
      assert.equal(typeof read, Number.isSafeInteger(Number(value)) ? 'number' : 'bigint')
      assert.equal(stringifyJson(read), text)
    }
  })

  it('keeps the text of numbers on request', () => {
    const texts = ['1.0', '1e2', '-1.5', '9223372036854775808', '1e400', '0.1', '1E+2', '-0.0']
    for (const text of texts) {
      const value = parseJson(`{"a":${text}}`, { exactNumbers: true }) as JsonObject
      assert.ok(value.a instanceof JsonNumber, text)
      assert.equal(value.a.text, text)
      assert.equal(stringifyJson(value), `{"a":${text}}`)
    }
    for (const text of ['0', '1', '-7', '2147483648', '123456789012345']) {
      assert.equal(parseJson(text, { exactNumbers: true }), Number(text))
    }
    for (const text of ['9223372036854775807', '-9223372036854775808', '9007199254740993']) {
      assert.equal(parseJson(text, { exactNumbers: true }), BigInt(text))
    }
    assert.ok(Object.is(parseJson('-0', { exactNumbers: true }), 0))
  })

  it('parses numbers as Go does for an untyped value', () => {
    assert.deepEqual(parseJson('[1.0,1e2,-0,-0.0,9223372036854775808,1e-400,9007199254740992]'), [
      1,
      100,
      0,
      0,
      9223372036854775808,
      0,
      9007199254740992n,
    ])
    const error = refusal('[1e400]')
    assert.equal(error.code, 'number')
    assert.equal(error.message, 'json: cannot unmarshal number 1e400 into Go value of type float64')
    // Go looks for syntax errors everywhere before it looks at any number.
    assert.equal(refusal('[1e400').message, 'unexpected end of JSON input')
  })

  it('replaces lone surrogates and invalid UTF-8 with U+FFFD, and keeps NUL', () => {
    const cases: readonly (readonly [string | Buffer, string])[] = [
      [String.raw`"\ud800"`, '\ufffd'],
      [String.raw`"\uDC00x"`, '\ufffdx'],
      [String.raw`"\ud83d\ude00"`, '😀'],
      [String.raw`"\ud800\ud83d\ude00"`, '\ufffd😀'],
      [String.raw`"\ud800\u0041"`, '\ufffdA'],
      [`"${'x'.repeat(200)}\\ud800"`, `${'x'.repeat(200)}\ufffd`],
      ['"a\ud800b"', 'a\ufffdb'],
      [Buffer.from([0x22, 0xff, 0x41, 0x22]), '\ufffdA'],
      [String.raw`"\u0000"`, '\0'],
      [String.raw`"\/\b\f\n\r\t\"\\"`, '/\b\f\n\r\t"\\'],
    ]
    for (const [input, value] of cases) assert.equal(parseJson(input), value)
  })

  it('reports repeated keys in the cases in which Kubernetes does', () => {
    const cases: readonly (readonly [string, readonly string[]])[] = [
      ['{"a":1,"b":2}', []],
      ['{"a":1,"a":2}', ['a']],
      ['{"data":{"a":"1","b":"2","a":"3"}}', ['data.a']],
      ['{"spec":{"containers":[{"name":"x"},{"name":"y","image":"z","name":"w"}]}}', ['spec.containers[1].name']],
      ['[[{"a":1,"a":1}]]', ['[0][0].a']],
      ['{"a":{"x":1,"x":2},"a":{"x":1,"x":2},"a":3}', ['a.x', 'a']],
      [String.raw`{"\u0061":1,"a":2}`, ['a']],
      [String.raw`{"k:{\"p\":1}":1,"k:{\"p\":1}":2}`, ['k:{"p":1}']],
      ['{"__proto__":1,"__proto__":2,"constructor":3}', ['__proto__']],
      ['{"":{"y":{"z":1,"z":2}}}', ['.y.z']],
      ['{"a":{"b":1},"b":{"a":1}}', []],
      ['{"a":"a\\"","b":"a"}', []],
    ]
    for (const [text, paths] of cases) {
      assert.deepEqual(
        duplicatesOf(text).map(({ path }) => path),
        paths,
        text,
      )
    }
  })

  it('reports the position of a repeated key, and uses its last value', () => {
    const text = '{"metadata":{"foo":1},"data":{"a":"1","b":"2","a":"3","c":"4"}}'
    assert.deepEqual(duplicatesOf(text), [{ path: 'data.a', parent: 'data', before: 2 }])
    assert.deepEqual(parseJson(text), { metadata: { foo: 1 }, data: { a: '3', b: '2', c: '4' } })
  })

  it('reports a repeated key if and only if there is one, at any depth and among any number of keys', () => {
    const key = fc.constantFrom('a', 'b', 'ab', 'ba', '', 'é', '__proto__', 'a"', 'name', 'names')
    const tree = fc.letrec<{ value: string }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom('1', '"x"', 'null', '{}'),
        fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((members) => {
          return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(', ')}}`
        }),
        fc.array(tie('value'), { maxLength: 3 }).map((items) => `[${items.join(',')}]`),
      ),
    })).value
    fc.assert(
      fc.property(tree, (text) => {
        const [before, after] = [countKeys(text), countMembers(JSON.parse(text))]
        assert.equal(duplicatesOf(text).length > 0, before !== after)
        assert.equal(scanJson(text).plain, before === after)
        assert.deepEqual(parseJson(text), JSON.parse(text))
      }),
      { numRuns: 500 },
    )
    const many = Array.from({ length: 20_000 }, (_, index) => `"key-${index}":0`)
    assert.deepEqual(duplicatesOf(`{${many.join(',')}}`), [])
    assert.equal(duplicatesOf(`{${many.join(',')},"key-77":1}`)[0]?.before, 20_000)
  })

  it('reports no more than a hundred repeated keys, each once', () => {
    const members = Array.from({ length: 300 }, (_, index) => `"k${index % 150}":1,"k${index % 150}":1`)
    assert.equal(duplicatesOf(`{${members.join(',')}}`).length, 100)
    assert.equal(duplicatesOf(`{"a":1${',"a":1'.repeat(50)}}`).length, 1)
  })
})

function countKeys(text: string): number {
  return [...text.matchAll(/"(?:[^"\\]|\\.)*":/g)].length
}

function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner = Object.values(value).reduce<number>((sum, member) => sum + countMembers(member), 0)
  return Array.isArray(value) ? inner : inner + Object.keys(value).length
}

describe('readJson() for trusted documents', () => {
  it('returns the same as parseJson, for numbers of any length', () => {
    const numbers = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    fc.assert(
      fc.property(fc.jsonValue(), numbers, (value, number) => {
        const text = `{"value":${stringifyJson(value)},"number":${number}}`
        assert.deepEqual(readJson(Buffer.from(text)), parseJson(text))
      }),
    )
  })

  it('throws the same errors, without the limits of a request', () => {
    assert.throws(() => readJson(Buffer.from('{"a"')), { message: 'unexpected end of JSON input' })
    const many = Array.from({ length: DEFAULT_JSON_LIMITS.maxWeight + 1 }, () => 1)
    assert.deepEqual(readJson(Buffer.from(stringifyJson([...many, 2n ** 60n]))), [...many, 2n ** 60n])
  })
})

describe('parseJson with hostile input', () => {
  const MEBIBYTE = 2 ** 20

  it('keeps __proto__ and constructor as members, and changes no prototypes', () => {
    for (const odd of ['', ',"n":1e0']) {
      const text = `{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}${odd}}`
      const value = parseJson(text) as JsonObject
      assert.deepEqual(Object.keys(value).slice(0, 2), ['__proto__', 'constructor'])
      assert.equal(Object.getPrototypeOf(value), Object.prototype)
      assert.equal(({} as Record<string, unknown>).polluted, undefined)
      assert.ok(stringifyJson(value).startsWith('{"__proto__":{"polluted":true},"constructor":'))
    }
  })

  it('rejects nesting beyond the limit and accepts it at the limit', () => {
    for (const text of [
      '['.repeat(3 * MEBIBYTE),
      '{"a":'.repeat(MEBIBYTE / 2),
      `${'['.repeat(10_001)}${']'.repeat(10_001)}`,
    ]) {
      const error = refusal(text)
      assert.equal(error.code, 'depth')
      assert.match(error.message, /^invalid character '[{[]' exceeded max depth$/)
    }
    const deepest = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
    assert.equal(stringifyJson(parseJson(deepest)), deepest)
    const oddest = `${'['.repeat(10_000)}9007199254740993${']'.repeat(10_000)}`
    assert.equal(stringifyJson(parseJson(oddest)), oddest)
  })

  it('rejects more than 116,000 strings in arrays', () => {
    const texts = (count: number): string => JSON.stringify(Array.from({ length: count }, (_, n) => `t${n}`))
    assert.equal(refusal(texts(120_001)).code, 'limit')
    assert.equal((parseJson(texts(115_000)) as unknown[]).length, 115_000)
    assert.equal((parseJson(`[1.5,${texts(100_000)}]`) as unknown[]).length, 2)
  })

  it('rejects texts that take too long to parse', () => {
    const keys = Array.from({ length: 300_000 }, (_, index) => `"${index.toString(36)}":0`)
    assert.equal(refusal(`{${keys.join(',')}}`).code, 'limit')
    assert.equal(refusal(`[${'{},'.repeat(MEBIBYTE)}{}]`).code, 'limit')
    assert.equal(refusal('[1,2,3]', { limits: { ...DEFAULT_JSON_LIMITS, maxLength: 3 } }).code, 'limit')
  })

  it('parses long strings, numbers and whitespace quickly', () => {
    const quotes = `"${String.raw`\"`.repeat(MEBIBYTE)}"`
    assert.equal((parseJson(quotes) as string).length, MEBIBYTE)
    const mixed = `{"a":"${`${'x'.repeat(100)}\\\\`.repeat(20_000)}","b":1}`
    assert.deepEqual(parseJson(mixed), JSON.parse(mixed))
    assert.equal(refusal('9'.repeat(MEBIBYTE)).code, 'number')
    assert.equal(refusal(`1e${'9'.repeat(MEBIBYTE)}`).code, 'number')
    assert.equal(refusal(' '.repeat(MEBIBYTE)).message, 'unexpected end of JSON input')
    assert.equal(refusal(`"${'\\\\'.repeat(MEBIBYTE)}`).message, 'unexpected end of JSON input')
  })

  it('takes linear time for keys with colliding hashes', () => {
    const keys = Array.from({ length: 5_000 }, (_, index) => `"${'\\\\'.repeat(index % 7)}${index}":0`)
    assert.equal(Object.keys(parseJson(`{${keys.join(',')}}`) as JsonObject).length, 5_000)
  })
})

describe('stringifyJson', () => {
  it('writes text that parses to the same value', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 6 }),
        fc.boolean(),
        fc.constantFrom(0, 2, 4),
        (value, sortedKeys, indent) => {
          const text = stringifyJson(value, { sortedKeys, indent })
          const again = parseJson(text)
          assert.equal(stringifyJson(again, { sortedKeys, indent }), text)
          if (!/\d{16}|-0/.test(text)) assert.deepEqual(again, JSON.parse(JSON.stringify(value)))
        },
      ),
    )
  })

  it('writes strings as Go does', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['<a href="x">&</a>', String.raw`"\u003ca href=\"x\"\u003e\u0026\u003c/a\u003e"`],
      ['\u2028\u2029', String.raw`"\u2028\u2029"`],
      ['\0\u0001\b\t\n\u000b\f\r\u001f\u007f', String.raw`"\u0000\u0001\b\t\n\u000b\f\r\u001f` + '\u007f"'],
      ['é😀\ufffd', '"é😀\ufffd"'],
      ['\ud800x', String.raw`"\ufffdx"`],
      [String.raw`\ud800`, String.raw`"\\ud800"`],
    ]
    for (const [text, json] of cases) {
      assert.equal(stringifyJson(text), json)
      assert.equal(stringifyJson({ [text]: text }, { sortedKeys: true }), `{${json}:${json}}`)
      assert.equal(stringifyJson([text, 2n ** 62n]), `[${json},4611686018427387904]`)
    }
  })

  it('writes numbers as Go does', () => {
    const text =
      '[1e+21,100000000000000000000,1e-7,0.000001,5e-324,1.7976931348623157e+308,0.1,-1.5,9223372036854775807]'
    assert.equal(stringifyJson(parseJson(text)), text)
  })

  it('sorts keys by bytes on request, including numeric and non-BMP keys', () => {
    const value = { b: 1, 10: 2, 9: 3, a: 4, '\uffff': 5, '😀': 6, '': 7, B: { z: 1, y: [{ d: 1, c: 2 }] } }
    assert.equal(
      stringifyJson(value, { sortedKeys: true }),
      '{"":7,"10":2,"9":3,"B":{"y":[{"c":2,"d":1}],"z":1},"a":4,"b":1,"\uffff":5,"😀":6}',
    )
    const word = fc
      .array(fc.constantFrom('a', 'é', '\ud7ff', '\ue000', '\uffff', '😀', '\u{10ffff}'))
      .map((units) => units.join(''))
    fc.assert(
      fc.property(word, word, (left, right) => {
        const expected = Buffer.compare(Buffer.from(left), Buffer.from(right))
        assert.equal(Math.sign(compareUtf8(left, right)), expected)
      }),
    )
  })

  it('keeps the order of members and omits undefined ones without that option', () => {
    const value = { z: 1, a: undefined, m: [undefined, 2n], b: { c: undefined } }
    assert.equal(stringifyJson(value), '{"z":1,"m":[null,2],"b":{}}')
    assert.equal(stringifyJson({ ...value, m: [undefined, 2] }), '{"z":1,"m":[null,2],"b":{}}')
    assert.equal(stringifyJson(undefined), 'null')
  })

  it("indents as Go's json.Indent does", () => {
    const text = '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": [],\n  "c": {\n    "d": "<"\n  }\n}'
    const value = { a: [1, {}], b: [], c: { d: '<' } }
    assert.equal(stringifyJson(value, { indent: 2 }), text.replace('<', String.raw`\u003c`))
    assert.equal(stringifyJson({ ...value, a: [1n, {}] }, { indent: 2 }), text.replace('<', String.raw`\u003c`))
  })

  it('throws for values that JSON cannot express', () => {
    const loop: Record<string, unknown> = { n: 1n }
    loop.self = loop
    for (const value of [loop, [1n, Number.NaN], [1n, -Infinity]]) {
      assert.throws(() => stringifyJson(value), { name: 'JsonError', code: 'value' })
    }
  })
})
