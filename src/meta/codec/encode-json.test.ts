import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { parseJson } from '#lib/json/json.ts'
import { runAtOnce } from '#lib/time-slicing.ts'

import { encodeJson, encodeJsonInSteps, encodeJsonList, stripTypeMeta, typeMetaPrefix } from './encode-json.ts'

const configMap = { group: '', version: 'v1', kind: 'ConfigMap' }

describe('encodeJson', () => {
  it("writes compact text with Go's escapes", () => {
    const value = { a: '<&>\u2028\u2029', b: [1, 1.5, 1e21, 1e-7], c: '\u0000\b\f\u007f"\\', d: 2n ** 63n - 1n }
    assert.equal(
      encodeJson(value),
      String.raw`{"a":"\u003c\u0026\u003e\u2028\u2029","b":[1,1.5,1e+21,1e-7],"c":"\u0000\b\f` +
        '\u007f' +
        String.raw`\"\\","d":9223372036854775807}`,
    )
  })

  it('sorts numeric keys as text in maps that contain some', () => {
    const value = {
      z: 1,
      data: { '10': 'a', '9': 'b', a: 'c', '01': 'd', '-1': 'e' },
      a: [{ '2': { y: 1, x: 2 }, '1': 0 }],
    }
    assert.equal(
      encodeJson(value),
      '{"z":1,"data":{"-1":"e","01":"d","10":"a","9":"b","a":"c"},"a":[{"1":0,"2":{"y":1,"x":2}}]}',
    )
  })

  it('handles string values that look like numeric keys', () => {
    assert.equal(encodeJson({ b: '"1":', a: 1 }), String.raw`{"b":"\"1\":","a":1}`)
  })

  it('keeps the text of numbers without a schema', () => {
    assert.equal(encodeJson(parseJson('{"a":1.0,"5":[1e2]}', { exactNumbers: true })), '{"5":[1e2],"a":1.0}')
  })

  it('indents the output with the option pretty', () => {
    const value = { b: [], c: {}, a: [1, { x: null }] }
    assert.equal(encodeJson(value, { pretty: true }), JSON.stringify(value, undefined, 2))
    assert.equal(
      encodeJson({ data: { '10': 'a', '9': [{}] } }, { pretty: true }),
      '{\n  "data": {\n    "10": "a",\n    "9": [\n      {}\n    ]\n  }\n}',
    )
  })

  it('omits undefined members', () => {
    assert.equal(encodeJson({ a: undefined, b: 1 }), '{"b":1}')
    assert.equal(encodeJson({ a: undefined, '1': 1 }), '{"1":1}')
  })
})

describe('encodeJson() of a list', () => {
  it('omits kind and apiVersion of items', () => {
    const prefix = typeMetaPrefix(configMap)
    const texts = ['a', 'b'].map((name) => encodeJson({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name } }))
    const items = texts.map((text) => stripTypeMeta(text, prefix))
    const gvk = { ...configMap, kind: 'ConfigMapList' }
    assert.equal(
      encodeJsonList({ gvk, metadata: '{"resourceVersion":"211"}', items }),
      '{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"211"},' +
        '"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}',
    )
    assert.match(encodeJsonList({ gvk, metadata: '{}', items: [] }), /"items":\[\]\}$/)
  })

  it('keeps items of another kind unchanged', () => {
    assert.equal(stripTypeMeta('{"kind":"Secret"}', typeMetaPrefix(configMap)), '{"kind":"Secret"}')
  })
})

function assertSame(value: unknown): void {
  assert.equal(runAtOnce(encodeJsonInSteps(value)), encodeJson(value))
}

function stepsOf(value: unknown): number {
  const steps = encodeJsonInSteps(value)
  let count = 0
  while (steps.next().done !== true) count++
  return count
}

function mapOf(length: number, entry: (at: number) => readonly [string, unknown]): object {
  return Object.fromEntries(Array.from({ length }, (_, at) => entry(at)))
}

describe('encodeJsonInSteps', () => {
  it('writes small values of any type as encodeJson does', () => {
    fc.assert(fc.property(fc.jsonValue(), assertSame))
    assertSame({ a: undefined, b: [undefined], c: 2n ** 62n })
  })

  it('writes large values as encodeJson does', () => {
    assertSame(Array.from({ length: 9000 }, (_, at) => (at % 3 === 0 ? [at] : `<${at}>`)))
    assertSame({ metadata: { a: mapOf(9000, (at) => [`v:"${at}"`, {}]), b: undefined }, list: [undefined, null] })
    assertSame(mapOf(9000, (at) => [String(at), { nested: mapOf(3, (inner) => [String(9 + inner), at]) }]))
    assertSame(Array.from({ length: 30 }, () => Array.from({ length: 3000 }, (_, at) => at)))
  })

  it('writes long strings as encodeJson does', () => {
    const parts = ['<', '>', '&', '\\', '\\ud800', '\ud800', '\u2028', '"', 'é', 'a', '\u0001']
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 9 }), fc.nat(9), (some, shift) => {
        assertSame(['a'.repeat(shift) + some.join('').repeat(100_000 / some.length)])
      }),
      { numRuns: 10 },
    )
  })

  it('writes deeply nested values', () => {
    let value: unknown = 1
    for (let depth = 0; depth < 9000; depth++) value = depth % 2 === 0 ? [value] : { a: value }
    assertSame(value)
  })

  it('takes many steps for large values', () => {
    const large = {
      'a wide map': mapOf(100_000, (at) => [`k${at}`, {}]),
      'a wide list': Array.from({ length: 100_000 }, (_, at) => `i${at}`),
      'a list of heavy items': Array.from({ length: 60 }, () => Array.from({ length: 3000 }, (_, at) => at)),
      'a text that is escaped everywhere': '<&>'.repeat(300_000),
    }
    for (const [name, value] of Object.entries(large)) assert.ok(stepsOf({ value }) > 20, name)
  })
})
