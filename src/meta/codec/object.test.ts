import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'

import type { GroupVersionKind } from '../kind.ts'
import type { FieldSchema, Schema, StructSchema } from '../schema.ts'
import type { FieldValidation } from './decode.ts'
import { encodeJson } from './encode-json.ts'
import { CodecError } from './error.ts'
import type { MediaType } from './negotiate.ts'
import { badRequestText, decodeObject, type DecodeOptions, decodeUntypedObject } from './object.ts'
import { encodeProtobuf } from './protobuf.ts'

const text: Schema = { type: 'string', goType: 'string' }

function field(name: string, schema: Schema): FieldSchema {
  return { name, schema, required: false, pointer: false, omitEmpty: true }
}

const data = field('data', { type: 'map', values: text })
const count = { ...field('count', { type: 'int64', goType: 'int64' }), pointer: true }

function kind(goType: string): StructSchema {
  return {
    type: 'struct',
    goType,
    fields: new Map([field('kind', text), field('apiVersion', text), data, count].map((one) => [one.name, one])),
    mapType: 'granular',
    preserveUnknown: false,
    protobuf: {
      fields: [
        { number: 1, wire: 'map', repeated: false, field: data },
        { number: 2, wire: 'int64', repeated: false, field: count },
      ],
    },
  }
}

const schemas = new Map([
  ['v1 ConfigMap', kind('v1.ConfigMap')],
  ['v1 Secret', kind('v1.Secret')],
  ['v1beta1 ConfigMap', kind('v1beta1.ConfigMap')],
])
const schemaFor = ({ version, kind: name }: GroupVersionKind): StructSchema | undefined =>
  schemas.get(`${version} ${name}`)
const configMap: GroupVersionKind = { group: '', version: 'v1', kind: 'ConfigMap' }
const expected = { ...configMap, internalType: 'core.ConfigMap' }
const options: DecodeOptions = { schemaFor, defaultKind: configMap, validation: 'Strict' }

const json: MediaType = 'application/json'
const yaml: MediaType = 'application/yaml'
const protobuf: MediaType = 'application/vnd.kubernetes.protobuf'

function refusal(run: () => unknown): CodecError {
  try {
    run()
  } catch (error) {
    assert.ok(error instanceof CodecError, String(error))
    return error
  }
  assert.fail('nothing was refused')
}

describe('decodeObject', () => {
  it('puts kind and apiVersion first', () => {
    const given = { data: { a: 'b' }, apiVersion: 'v1', kind: 'ConfigMap' }
    const decoded = decodeObject(JSON.stringify(given), json, { schemaFor })
    assert.deepEqual(decoded.gvk, configMap)
    assert.equal(encodeJson(decoded.object), '{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"b"}}')
  })

  for (const body of ['{}', 'null', '{"kind":"","apiVersion":""}', '{"kind":"ConfigMap"}', '{"apiVersion":"v1"}']) {
    it(`uses the default kind for ${body}`, () => {
      const { gvk, object } = decodeObject(body, json, options)
      assert.deepEqual(gvk, configMap)
      assert.equal(encodeJson(object), '{"kind":"ConfigMap","apiVersion":"v1"}')
    })
  }

  it('decodes JSON, YAML and protobuf to the same object', () => {
    const { object } = decodeObject(Buffer.from('{"data":{"b":"1","a":"2"},"count":0}'), json, options)
    assert.deepEqual(decodeObject('count: 0\ndata: {b: "1", a: "2"}\n---\nzork: 1', yaml, options).object, object)
    const bytes = encodeProtobuf(schemas.get('v1 ConfigMap')!, configMap, object)
    assert.deepEqual(decodeObject(bytes, protobuf, { schemaFor }).object, object)
  })

  for (const [body, code, message] of [
    ['', 'syntax', "couldn't get version/kind; json parse error: unexpected end of JSON input"],
    ['{"a":1}}', 'syntax', "couldn't get version/kind; json parse error: invalid character '}' after top-level value"],
    [
      '{"a":01}',
      'syntax',
      "couldn't get version/kind; json parse error: invalid character '1' after object key:value pair",
    ],
    [
      '{"kind":1}',
      'type',
      "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string",
    ],
    [
      '{"APIVERSION":{}}',
      'type',
      "couldn't get version/kind; json parse error: json: cannot unmarshal object into Go struct field .apiVersion of type string",
    ],
    [
      '[]',
      'type',
      String.raw`couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`,
    ],
    ['{"apiVersion":"a/b/c"}', 'syntax', 'unexpected GroupVersion string: a/b/c'],
    ['{}', 'no-kind', "Object 'Kind' is missing in '{}'"],
    ['{"kind":"ConfigMap"}', 'no-version', 'Object \'apiVersion\' is missing in \'{"kind":"ConfigMap"}\''],
    [
      '{"kind":"Zork","apiVersion":"a/v1"}',
      'unknown-kind',
      'no kind "Zork" is registered for version "a/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
    ],
    [
      '{"kind":"__proto__","apiVersion":"v1"}',
      'unknown-kind',
      'no kind "__proto__" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
    ],
  ] as const) {
    it(`rejects ${body || 'an empty body'}`, () => {
      const error = refusal(() => decodeObject(body, json, { schemaFor }))
      assert.deepEqual([error.code, error.message], [code, message])
    })
  }

  it('finds the kind regardless of case, like Go, and then reports the unknown field', () => {
    const { gvk, offences } = decodeObject('{"Kind":"ConfigMap","apiversion":"v1"}', json, {
      schemaFor,
      validation: 'Warn',
    })
    assert.deepEqual(gvk, configMap)
    assert.deepEqual(offences, ['unknown field "Kind"', 'unknown field "apiversion"'])
  })

  it('reports duplicate keys of YAML, sorted as in Go', () => {
    const body = 'zork: 1\ndata:\n  a: b\n  a: c\nbar: 2\n'
    assert.deepEqual(decodeObject(body, yaml, { ...options, validation: 'Warn' }).offences, [
      'line 4: key "a" already set in map',
      'unknown field "bar"',
      'unknown field "zork"',
    ])
    assert.equal(
      refusal(() => decodeObject(body, yaml, options)).message,
      'strict decoding error: yaml: unmarshal errors:\n  line 4: key "a" already set in map, unknown field "bar", unknown field "zork"',
    )
    assert.deepEqual(decodeObject(body, yaml, { ...options, validation: 'Ignore' }).offences, [])
    assert.match(
      refusal(() => decodeObject('data:\n  a: yes', yaml, options)).message,
      /bool into Go .*ConfigMap\.data of/,
    )
    assert.equal(refusal(() => decodeObject('a: b: c', yaml, options)).code, 'syntax')
  })
})

describe('decodeObject() with an expected kind', () => {
  const decode = (body: string, validation: FieldValidation = 'Strict'): CodecError =>
    refusal(() => decodeObject(body, json, { ...options, expected, validation }))
  const answer = (body: string): string => badRequestText(decode(body), 'ConfigMap', Buffer.from(body))

  for (const [body, message] of [
    [
      '{"kind":"Secret","apiVersion":"v1"}',
      'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion',
    ],
    [
      '{"kind":"ConfigMap","apiVersion":"v1beta1"}',
      'the API version in the data (v1beta1) does not match the expected API version (v1)',
    ],
    [
      '{"count":1.0}',
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number 1.0 into Go struct field ConfigMap.count of type int64',
    ],
    ['{"a":1}', 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "a"'],
    [
      '{"data":{"a":"b"},"data":',
      `the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input ({"data":{"a":"b"},"data":)`,
    ],
    [
      'x{"data":{"a":"bcdefghijklmnopqrstuvwxyz"}}',
      `the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'x' looking for beginning of value (787b2264617461223a7b2261223a2262636465666768696a6b6c6d6e6f70 ...)`,
    ],
  ] as const) {
    it(`fails for ${body} with upstream's error`, () => assert.equal(answer(body), message))
  }

  it('accepts another version if the endpoint accepts it', () => {
    const lenient = { ...options, expected: { ...expected, acceptsVersion: () => true } }
    assert.equal(decodeObject('{"kind":"ConfigMap","apiVersion":"v1beta1"}', json, lenient).gvk.version, 'v1beta1')
  })

  it('checks the kind before unknown fields, and another version after them', () => {
    assert.equal(decode('{"kind":"Secret","apiVersion":"v1","a":1}').code, 'wrong-kind')
    assert.equal(decode('{"kind":"ConfigMap","apiVersion":"v1beta1","a":1}').code, 'strict')
    assert.equal(decode('{"kind":"ConfigMap","apiVersion":"v1beta1","a":1}', 'Warn').code, 'wrong-version')
  })
})

describe('decodeUntypedObject()', () => {
  it('keeps all fields, with sorted keys', () => {
    const { gvk, object } = decodeUntypedObject('{"spec":{"b":null,"a":1.0},"kind":"W","apiVersion":"e.com/v1"}', json)
    assert.deepEqual(gvk, { group: 'e.com', version: 'v1', kind: 'W' })
    assert.equal(encodeJson(object), '{"apiVersion":"e.com/v1","kind":"W","spec":{"a":1,"b":null}}')
  })

  it('requires kind and apiVersion', () => {
    const error = refusal(() => decodeUntypedObject('{"spec":1}', json))
    assert.deepEqual([error.code, error.message], ['no-kind', `Object 'Kind' is missing in '{"spec":1}'`])
  })

  it('reports duplicate keys at any depth', () => {
    const body = '{"kind":"W","apiVersion":"v1","spec":{"a":1,"a":2}}'
    assert.deepEqual(decodeUntypedObject(body, json, 'Warn').offences, ['duplicate field "spec.a"'])
    assert.deepEqual(decodeUntypedObject(body, json).offences, [])
    assert.equal(
      refusal(() => decodeUntypedObject(body, json, 'Strict')).message,
      'strict decoding error: duplicate field "spec.a"',
    )
  })
})

describe('decodeObject() with hostile bodies', () => {
  const read = (body: string, mediaType = json): unknown => decodeObject(body, mediaType, options).object

  for (const [name, body, code] of [
    ['3 MiB of [', '['.repeat(3 << 20), 'depth'],
    ['3 MiB of {"a":', '{"a":'.repeat(600_000), 'depth'],
    ['300,000 keys', `{"data":{${Array.from({ length: 300_000 }, (_, at) => `"k${at}":""`).join(',')}}}`, 'limit'],
    ['2^63', '{"count":9223372036854775808}', 'type'],
    ['1.0', '{"count":1.0}', 'type'],
    ['a huge exponent', `{"count":1e${'9'.repeat(1000)}}`, 'type'],
    ['repeated keys', '{"data":{"a":"b","a":"c"}}', 'strict'],
    ['a byte order mark', '\ufeff{}', 'syntax'],
    ['a bare NUL', '{"data":{"a":"\u0000"}}', 'syntax'],
  ] as const) {
    it(`rejects ${name}`, () => assert.equal(refusal(() => read(body)).code, code))
  }

  for (const [name, body, expectedText] of [
    ['2^63-1', '{"count":9223372036854775807}', '"count":9223372036854775807'],
    ['-0', '{"count":-0}', '"count":0'],
    ['NUL', String.raw`{"data":{"a":"\u0000"}}`, String.raw`"data":{"a":"\u0000"}`],
    ['a lone surrogate', String.raw`{"data":{"a":"\ud800x"}}`, '"data":{"a":"\ufffdx"}'],
    ['__proto__', '{"data":{"z":"1","__proto__":"2"}}', '"data":{"__proto__":"2","z":"1"}'],
    ['constructor', '{"data":{"constructor":"1"}}', '"data":{"constructor":"1"}'],
    ['keys like numbers', '{"data":{"9":"a","10":"b"}}', '"data":{"10":"b","9":"a"}'],
  ] as const) {
    it(`keeps ${name}`, () => {
      assert.equal(encodeJson(read(body)), `{"kind":"ConfigMap","apiVersion":"v1",${expectedText}}`)
    })
  }

  it('does not change prototypes', () => {
    const body = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"data":{"__proto__":"x"}}'
    for (const mediaType of [json, yaml]) decodeObject(body, mediaType, { ...options, validation: 'Warn' })
    assert.equal(({} as { polluted?: number }).polluted, undefined)
  })
})
