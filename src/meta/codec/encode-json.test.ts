import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseJson } from '#lib/json.ts'

import { encodeJson, encodeJsonList, stripTypeMeta, typeMetaPrefix } from './encode-json.ts'

const configMap = { group: '', version: 'v1', kind: 'ConfigMap' }

describe('encodeJson', () => {
  it('writes compactly, with what Go escapes escaped', () => {
    const value = { a: '<&>\u2028\u2029', b: [1, 1.5, 1e21, 1e-7], c: '\u0000\b\f\u007f"\\', d: 2n ** 63n - 1n }
    assert.equal(
      encodeJson(value),
      String.raw`{"a":"\u003c\u0026\u003e\u2028\u2029","b":[1,1.5,1e+21,1e-7],"c":"\u0000\b\f` +
        '\u007f' +
        String.raw`\"\\","d":9223372036854775807}`,
    )
  })

  it('sorts keys that look like numbers as text, and only the maps that have them', () => {
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

  it('is not misled by text that looks like such a key', () => {
    assert.equal(encodeJson({ b: '"1":', a: 1 }), String.raw`{"b":"\"1\":","a":1}`)
  })

  it('keeps numbers that were only passed on as they came', () => {
    assert.equal(encodeJson(parseJson('{"a":1.0,"5":[1e2]}', { exactNumbers: true })), '{"5":[1e2],"a":1.0}')
  })

  it('indents for people', () => {
    const value = { b: [], c: {}, a: [1, { x: null }] }
    assert.equal(encodeJson(value, { pretty: true }), JSON.stringify(value, undefined, 2))
    assert.equal(
      encodeJson({ data: { '10': 'a', '9': [{}] } }, { pretty: true }),
      '{\n  "data": {\n    "10": "a",\n    "9": [\n      {}\n    ]\n  }\n}',
    )
  })

  it('leaves out members without a value', () => {
    assert.equal(encodeJson({ a: undefined, b: 1 }), '{"b":1}')
    assert.equal(encodeJson({ a: undefined, '1': 1 }), '{"1":1}')
  })
})

describe('lists', () => {
  it('have items that do not say what they are', () => {
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

  it('keep items that are of another kind as they are', () => {
    assert.equal(stripTypeMeta('{"kind":"Secret"}', typeMetaPrefix(configMap)), '{"kind":"Secret"}')
  })
})
