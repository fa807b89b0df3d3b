import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { parseJson } from '#lib/json/json.ts'
import type { JsonDuplicate } from '#lib/json/value.ts'

import type { FieldSchema, ProtobufMessage, ScalarType, Schema, StructSchema } from '../schema.ts'
import { decodeValue, type FieldValidation, zeroValue } from './decode.ts'
import { CodecError } from './error.ts'

const goTypes: Partial<Record<ScalarType, string>> = { boolean: 'bool', bytes: '[]uint8' }

function scalar(type: ScalarType, goType: string = goTypes[type] ?? type): Schema {
  return { type, goType }
}

function field(name: string, schema: Schema, options: Partial<FieldSchema> = {}): FieldSchema {
  return { name, schema, required: false, pointer: false, omitEmpty: true, ...options }
}

function struct(goType: string, fields: FieldSchema[], protobuf?: ProtobufMessage): StructSchema {
  return {
    type: 'struct',
    goType,
    fields: new Map(fields.map((one) => [one.name, one])),
    mapType: 'granular',
    preserveUnknown: false,
    ...(protobuf && { protobuf }),
  }
}

const text = scalar('string')
const port = struct('v1.Port', [
  field('name', text),
  field('port', scalar('int32'), { omitEmpty: false }),
  field('target', scalar('int-or-string')),
])
const spec = struct('v1.ThingSpec', [
  field('count', scalar('int32'), { pointer: true }),
  field('size', scalar('int64')),
  field('ratio', scalar('float64')),
  field('on', scalar('boolean')),
  field('ports', { type: 'list', items: port, pointerItems: false }),
  field('rules', { type: 'list', items: text, pointerItems: false }, { omitEmpty: false }),
  field('links', { type: 'list', items: port, pointerItems: true }),
  field('labels', { type: 'map', values: text }),
  field('sizes', { type: 'map', values: scalar('quantity'), goType: 'v1.Sizes' }),
  field('secret', { type: 'map', values: scalar('bytes') }),
  field('raw', { type: 'any', goType: 'runtime.RawExtension' }, { pointer: true }),
  field('loose', { type: 'any', goType: 'interface {}' }, { pointer: true }),
  field('born', scalar('time')),
  field('seen', scalar('microtime'), { pointer: true }),
  field('every', scalar('duration'), { pointer: true }),
])
const status = struct('v1.ThingStatus', [
  field('phase', scalar('string', 'v1.Phase')),
  field('ready', scalar('boolean')),
])
const thing = struct('v1.Thing', [
  field('kind', text),
  field('apiVersion', text),
  field('spec', spec, { omitEmpty: false }),
  field('status', status),
])

function decode(json: string, validation: FieldValidation = 'Warn'): { value: unknown; offences: string[] } {
  const duplicates: JsonDuplicate[] = []
  const offences: string[] = []
  const given = parseJson(json, { exactNumbers: true, duplicates })
  return { value: decodeValue(thing, given, validation, { duplicates, offences }), offences }
}

/** The decoded spec of a body, without the always-written fields. */
function specOf(json: string): unknown {
  const { spec: found } = decode(`{"spec":${json}}`).value as { spec: Record<string, unknown> }
  if (found['rules'] === null) delete found['rules']
  return found
}

describe('decodeValue() by a schema', () => {
  it('adds only the fields that Go always writes', () => {
    assert.equal(JSON.stringify(decode('{}').value), '{"spec":{"rules":null},"status":{}}')
    assert.equal(JSON.stringify(zeroValue(thing)), '{"spec":{"rules":null},"status":{}}')
    assert.notEqual(zeroValue(thing), zeroValue(thing))
  })

  it('orders fields by declaration and keys by bytes', () => {
    const { value } = decode(
      '{"status":{"ready":true,"phase":"a"},"spec":{"labels":{"😀":"1","b":"2","\uffff":"3","a":"4"},"rules":[],"size":1}}',
    )
    assert.equal(
      JSON.stringify(value),
      '{"spec":{"size":1,"rules":[],"labels":{"a":"4","b":"2","\uffff":"3","😀":"1"}},"status":{"phase":"a","ready":true}}',
    )
  })

  it('returns the given value unchanged if it is canonical', () => {
    const given = parseJson('{"spec":{"count":0,"ports":[{"port":1,"target":"a"}],"rules":null},"status":{}}')
    const before = JSON.stringify(given)
    assert.equal(decodeValue(thing, given, 'Strict', { offences: [] }), given)
    assert.equal(JSON.stringify(given), before)
  })

  it('returns the same for a decoded value', () => {
    fc.assert(
      fc.property(
        fc.record(
          {
            count: fc.option(fc.integer({ min: -5, max: 5 })),
            size: fc.option(fc.maxSafeInteger()),
            on: fc.option(fc.boolean()),
            rules: fc.option(fc.array(fc.string())),
            labels: fc.option(fc.dictionary(fc.string(), fc.option(fc.string()))),
            ports: fc.option(fc.array(fc.option(fc.record({ port: fc.nat(9) }, { requiredKeys: [] })))),
          },
          { requiredKeys: [] },
        ),
        (generated) => {
          const once = decodeValue(thing, structuredClone({ spec: generated }), 'Strict', { offences: [] })
          const twice = decodeValue(thing, structuredClone(once), 'Strict', { offences: [] })
          assert.equal(JSON.stringify(twice), JSON.stringify(once))
        },
      ),
    )
  })

  for (const [given, expected] of [
    ['{"count":0,"size":0,"on":false,"ratio":0}', '{"count":0}'],
    ['{"count":null,"size":null,"on":null}', '{}'],
    ['{"count":-0,"size":-0}', '{"count":0}'],
    ['{"ports":[null]}', '{"ports":[{"port":0,"target":0}]}'],
    ['{"links":[null,{}]}', '{"links":[null,{"port":0,"target":0}]}'],
    ['{"ports":[],"labels":{}}', '{}'],
    ['{"rules":[]}', '{"rules":[]}'],
    ['{"rules":[null]}', '{"rules":[""]}'],
    ['{"labels":{"a":null}}', '{"labels":{"a":""}}'],
    ['{"secret":{"a":null,"b":"","c":"YR==","d":[97]}}', '{"secret":{"a":null,"b":"","c":"YQ==","d":"YQ=="}}'],
    ['{"sizes":{"a":"1000m","b":1.5,"c":" 2Ki ","d":null}}', '{"sizes":{"a":"1","b":"1500m","c":"2Ki","d":"0"}}'],
    ['{"born":"2026-01-02T04:04:05.9+01:00"}', '{"born":"2026-01-02T03:04:05Z"}'],
    ['{"born":"0001-01-01T00:00:00Z"}', '{}'],
    ['{"born":"2024-02-29T00:00:00Z"}', '{"born":"2024-02-29T00:00:00Z"}'],
    ['{"seen":"2026-01-02T03:04:05.000006Z"}', '{"seen":"2026-01-02T03:04:05.000006Z"}'],
    ['{"every":"90m"}', '{"every":"1h30m0s"}'],
    ['{"raw":{"b":1.0,"a":[1e2,{}]}}', '{"raw":{"b":1.0,"a":[1e2,{}]}}'],
    ['{"raw":null,"loose":null}', '{}'],
    ['{"loose":{"b":1.0,"a":[1e2,{"z":1,"y":2}]}}', '{"loose":{"a":[100,{"y":2,"z":1}],"b":1}}'],
    ['{"ports":[{"target":"x"},{"target":8080}]}', '{"ports":[{"port":0,"target":"x"},{"port":0,"target":8080}]}'],
  ] as const) {
    it(`decodes ${given} to ${expected}`, () => assert.equal(JSON.stringify(specOf(given)), expected))
  }

  it('keeps every int64 value', () => {
    assert.deepEqual(specOf('{"size":9223372036854775807}'), { size: 9223372036854775807n })
    assert.deepEqual(specOf('{"size":-9223372036854775808}'), { size: -9223372036854775808n })
    assert.deepEqual(specOf('{"size":9007199254740991}'), { size: 9007199254740991 })
  })

  for (const [given, message] of [
    ['{"spec":{"count":1.0}}', 'number 1.0 into Go struct field ThingSpec.spec.count of type int32'],
    ['{"spec":{"size":1e3}}', 'number 1e3 into Go struct field ThingSpec.spec.size of type int64'],
    ['{"spec":{"ratio":1e999}}', 'number 1e999 into Go struct field ThingSpec.spec.ratio of type float64'],
    ['{"spec":{"ports":[{"port":"x"}]}}', 'string into Go struct field Port.spec.ports.port of type int32'],
    ['{"spec":{"ports":{}}}', 'object into Go struct field ThingSpec.spec.ports of type []v1.Port'],
    ['{"spec":{"links":{}}}', 'object into Go struct field ThingSpec.spec.links of type []*v1.Port'],
    ['{"spec":{"labels":[]}}', 'array into Go struct field ThingSpec.spec.labels of type map[string]string'],
    ['{"spec":{"sizes":true}}', 'bool into Go struct field ThingSpec.spec.sizes of type v1.Sizes'],
    ['{"spec":{"born":1}}', 'number into Go struct field ThingSpec.spec.born of type string'],
    ['{"spec":{"ports":[{"target":[]}]}}', 'array into Go struct field Port.spec.ports.target of type int32'],
    ['{"status":{"phase":1}}', 'number into Go struct field ThingStatus.status.phase of type v1.Phase'],
    ['[]', 'array into Go value of type v1.Thing'],
    ['"x"', 'string into Go value of type v1.Thing'],
  ] as const) {
    it(`rejects ${given}`, () => {
      const expected = new CodecError('type', `json: cannot unmarshal ${message}`)
      assert.throws(() => decode(given), { message: expected.message, code: 'type' })
    })
  }

  it('fails with the first type mismatch, but with an invalid quantity before any other', () => {
    assert.throws(() => decode('{"spec":{"count":"a","size":"b"}}'), /ThingSpec\.spec\.count/)
    assert.throws(() => decode('{"spec":{"count":"a","sizes":{"x":"y"}}}'), /quantities must match/)
  })

  it('names the embedded struct of a field in its error', () => {
    const source = field('emptyDir', port, { pointer: true })
    const name = field('name', text)
    const inline: ProtobufMessage & { goType: string } = {
      goType: 'v1.VolumeSource',
      fields: [{ number: 1, wire: 'message', repeated: false, field: source }],
    }
    const volume = struct('v1.Volume', [field('kind', text), name, source], {
      fields: [
        { number: 1, wire: 'string', repeated: false, field: name },
        { number: 2, wire: 'message', repeated: false, inline },
      ],
    })
    const refuse = (given: unknown): unknown => decodeValue(volume, given, 'Ignore', { offences: [] })
    assert.throws(() => refuse({ emptyDir: { port: 'x' } }), /field Port\.VolumeSource\.emptyDir\.port of type/)
    assert.throws(() => refuse({ emptyDir: 1 }), /field Volume\.VolumeSource\.emptyDir of type v1\.Port/)
    assert.throws(() => refuse({ name: 1 }), /field Volume\.name of type/)
    assert.throws(() => refuse({ kind: 1 }), /field Volume\.TypeMeta\.kind of type/)
  })
})

describe('unknown and repeated fields in decodeValue()', () => {
  for (const [given, offences] of [
    ['{"zork":1,"zork":2}', ['unknown field "zork"']],
    ['{"Spec":{}}', ['unknown field "Spec"']],
    ['{"spec":{"ports":[{},{"a":1}]}}', ['unknown field "spec.ports[1].a"']],
    ['{"spec":{"zork":{"a":1,"a":2}}}', ['unknown field "spec.zork"']],
    ['{"spec":{"raw":{"a":1,"a":2}}}', []],
    ['{"spec":{"labels":{"x":"1","x":"2"},"b":1}}', ['duplicate field "spec.labels.x"', 'unknown field "spec.b"']],
    [
      '{"a":1,"spec":{"size":1,"size":2},"b":1}',
      ['unknown field "a"', 'duplicate field "spec.size"', 'unknown field "b"'],
    ],
    ['{"spec":{"labels":{"__proto__":"1","__proto__":"2"}}}', ['duplicate field "spec.labels.__proto__"']],
    ['{"__proto__":{},"constructor":1,"toString":2}', ['__proto__', 'constructor', 'toString'].map(unknownField)],
  ] as const) {
    it(`are reported in the order of the document: ${given}`, () => {
      assert.deepEqual(decode(given).offences, offences)
      assert.deepEqual(decode(given, 'Ignore').offences, [])
    })
  }

  it('are reported up to a hundred', () => {
    const many = Array.from({ length: 300 }, (_, index) => `"a${index}":1`).join(',')
    assert.equal(decode(`{${many}}`).offences.length, 100)
  })

  it('are not part of the decoded object', () => {
    assert.equal(
      JSON.stringify(decode('{"__proto__":{"polluted":1},"a":1}').value),
      '{"spec":{"rules":null},"status":{}}',
    )
    assert.equal(({} as { polluted?: number }).polluted, undefined)
  })
})

describe('decoded structs that keep unknown fields', () => {
  it('have sorted keys, and report no unknown field', () => {
    const open = { ...port, preserveUnknown: true }
    const offences: string[] = []
    const given = parseJson('{"zork":{"b":1.0,"a":2},"port":1,"__proto__":{},"name":""}', { exactNumbers: true })
    const value = decodeValue(open, given, 'Strict', { offences })
    assert.equal(JSON.stringify(value), '{"__proto__":{},"port":1,"target":0,"zork":{"a":2,"b":1}}')
    assert.deepEqual(offences, [])
  })
})

describe('decodeValue() with hostile input', () => {
  it('keeps __proto__ as an ordinary key', () => {
    const { value } = decode('{"spec":{"labels":{"b":"1","__proto__":"2","a":"3"}}}')
    assert.match(JSON.stringify(value), /"labels":\{"__proto__":"2","a":"3","b":"1"\}/)
    const nested = decode('{"spec":{"secret":{"b":"","__proto__":[1]}}}').value as { spec: { secret: object } }
    assert.deepEqual(Object.keys(nested.spec.secret), ['__proto__', 'b'])
    assert.equal(Object.getPrototypeOf(nested.spec.secret), Object.prototype)
  })

  it('rejects values that are nested deeper than the stack allows', () => {
    const recursive: { schema?: StructSchema } = {}
    const node = struct('v1.Node', [
      {
        ...field('not', text, { pointer: true }),
        get schema() {
          return recursive.schema as StructSchema
        },
      },
    ])
    recursive.schema = node
    let value: unknown = {}
    for (let level = 0; level < 50_000; level++) value = { not: value }
    assert.throws(() => decodeValue(node, value, 'Ignore', { offences: [] }), { code: 'depth' })
  })

  it('rejects a short text that leads to too many structs', () => {
    const ports = Array.from({ length: 50 }, () => null)
    const given = (): unknown => ({ spec: { ports: [...ports] } })
    assert.ok(decodeValue(thing, given(), 'Ignore', { offences: [] }))
    assert.throws(() => decodeValue(thing, given(), 'Ignore', { offences: [], maxStructs: 40 }), { code: 'limit' })
  })
})

describe('decodeValue() with union types', () => {
  const props: { schema?: StructSchema } = {}
  const lazily = (name: string, make: () => Schema): FieldSchema => ({
    ...field(name, text, { pointer: true }),
    get schema() {
      return make()
    },
  })
  const self = (): StructSchema => props.schema as StructSchema
  const schemaField = lazily('schema', self)
  const orBool = struct('v1.PropsOrBool', [field('allows', scalar('boolean')), schemaField])
  const lists: Schema = {
    type: 'list',
    pointerItems: false,
    get items() {
      return self()
    },
  }
  const orArray = struct('v1.PropsOrArray', [schemaField, field('schemas', lists)])
  props.schema = struct('v1.Props', [
    field('type', text),
    field('more', { type: 'any', goType: orBool.goType, alternatives: orBool }, { pointer: true }),
    field('items', { type: 'any', goType: orArray.goType, alternatives: orArray }, { pointer: true }),
  ])
  const read = (given: unknown): { value: unknown; offences: string[] } => {
    const offences: string[] = []
    return { value: decodeValue(self(), given, 'Strict', { offences }), offences }
  }

  it('accepts each of their forms', () => {
    for (const given of [{ more: true }, { more: false }, { more: { type: 'a' } }, { items: [{}, { type: 'b' }] }]) {
      assert.deepEqual(read(structuredClone(given)).value, given)
    }
    assert.deepEqual(read({ items: [] }).value, { items: null })
    assert.deepEqual(read({ items: 'x' }).value, { items: null })
  })

  it('drops unknown fields inside without reporting them', () => {
    assert.deepEqual(read({ zork: 1, items: { zork: 1, type: 'a' } }), {
      value: { items: { type: 'a' } },
      offences: ['unknown field "zork"'],
    })
  })

  it('fails at once, with the outer struct in the error', () => {
    assert.throws(() => read({ more: 1 }), { message: 'boolean or JSON schema expected' })
    assert.throws(() => read({ items: { more: { type: 1 } } }), /field Props\.items\.more\.type of type string/)
  })
})

function unknownField(name: string): string {
  return `unknown field "${name}"`
}
