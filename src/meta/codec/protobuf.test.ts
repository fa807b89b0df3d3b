import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import type { JsonObject } from '#lib/json/value.ts'

import type { FieldSchema, ProtobufField, Schema, ScalarType, StructSchema } from '../schema.ts'
import { encodeJson } from './encode-json.ts'
import { CodecError } from './error.ts'
import { decodeMessage } from './protobuf-decode.ts'
import {
  decodeEnvelope,
  encodeEnvelope,
  encodeEnvelopeAround,
  encodeListItems,
  encodeMessage,
  encodeProtobuf,
  isProtobuf,
} from './protobuf.ts'
import { sortMembers } from './untyped.ts'

function scalar(type: ScalarType): Schema {
  return { type, goType: type }
}

type Row = [number: number, name: string, schema: Schema, options?: Partial<FieldSchema>]

/** A struct with fields in the given order, regardless of their numbers. Lists are repeated unless they have a name. */
function struct(goType: string, ...rows: Row[]): StructSchema {
  const fields = new Map<string, FieldSchema>()
  const numbered: ProtobufField[] = rows.map(([number, name, schema, options]) => {
    const field = { name, schema, required: false, pointer: false, omitEmpty: true, ...options }
    fields.set(name, field)
    const repeated = schema.type === 'list' && schema.goType === undefined
    return { number, wire: 'message', repeated, field }
  })
  const protobuf = { fields: numbered.toSorted((a, b) => a.number - b.number) }
  return { type: 'struct', goType, fields, mapType: 'granular', preserveUnknown: false, protobuf }
}

function listOf(items: Schema, goType?: string): Schema {
  return { type: 'list', items, pointerItems: false, ...(goType !== undefined && { goType }) }
}

function mapOf(values: Schema): Schema {
  return { type: 'map', values }
}

const item = struct('v1.Item', [1, 'name', scalar('string')], [2, 'size', scalar('int32'), { pointer: true }])
const source = struct('v1.Source', [1, 'path', scalar('string')], [2, 'item', item, { pointer: true }])
const base = struct(
  'v1.Spec',
  [1, 'text', scalar('string')],
  [3, 'always', scalar('string'), { omitEmpty: false }],
  [2, 'number', scalar('int64')],
  [4, 'pointer', scalar('int64'), { pointer: true }],
  [5, 'flag', scalar('boolean')],
  [6, 'ratio', scalar('float64')],
  [7, 'bytes', scalar('bytes')],
  [8, 'items', listOf(item)],
  [9, 'numbers', listOf(scalar('int32'))],
  [10, 'labels', mapOf(scalar('string'))],
  [11, 'secrets', mapOf(scalar('bytes'))],
  [12, 'extra', mapOf(listOf(scalar('string'), 'v1.ExtraValue'))],
  [13, 'verbs', listOf(scalar('string'), 'v1.Verbs'), { omitEmpty: false }],
  [14, 'item', item],
  [15, 'time', scalar('time')],
  [16, 'micro', scalar('microtime'), { pointer: true }],
  [17, 'quantity', scalar('quantity'), { pointer: true }],
  [18, 'port', scalar('int-or-string'), { pointer: true }],
  [19, 'every', scalar('duration'), { pointer: true }],
  [20, 'raw', { type: 'any', goType: 'runtime.RawExtension' }, { pointer: true }],
  [22, 'sizes', mapOf(scalar('quantity'))],
)
/** The same with `path` and `item` of an inlined source under number 21. */
const spec: StructSchema = {
  ...base,
  fields: new Map([...base.fields, ['path', source.fields.get('path')!]]),
  protobuf: {
    fields: [
      ...base.protobuf!.fields,
      {
        number: 21,
        wire: 'message',
        repeated: false,
        inline: { fields: [source.protobuf!.fields[0]!] },
      },
    ],
  },
}

function hex(object: JsonObject, schema = spec): string {
  return encodeMessage(schema, object).toString('hex')
}

function read(bytes: string, schema = spec): JsonObject {
  return decodeMessage(schema, Buffer.from(bytes, 'hex'))
}

/** The always-written fields of a spec: always, null verbs and the empty item. */
const nothing = { always: '', verbs: null, item: {} }

describe('encodeMessage() to protobuf', () => {
  it('writes value fields even if zero, and pointer fields only if set', () => {
    assert.equal(hex({}, item), '0a00')
    assert.equal(hex({ size: 0 }, item), '0a001000')
    assert.equal(hex({ name: 'é', size: -1 }, item), '0a02c3a910ffffffffffffffffff01')
  })

  it('writes fields by number, repeated ones one by one, maps sorted, inlined structs as messages', () => {
    const object = {
      text: 'a',
      numbers: [1, 2],
      labels: { '10': 'x', '9': 'y', a: '' },
      path: 'p',
    }
    const labels = '52070a02313012017852060a013912017952050a01611200'
    const rest = '72020a007a00aa01030a0170'
    assert.equal(hex(object), `0a016110001a00280031000000000000000048014802${labels}${rest}`)
  })

  it('distinguishes nil bytes and lists from empty ones', () => {
    const start = '0a0010001a002800310000000000000000'
    const end = '72020a007a00aa01020a00'
    assert.equal(hex({ secrets: { a: null, b: '' } }), `${start}5a030a01615a050a01621200${end}`)
    assert.equal(hex({ verbs: [] }), `${start}6a00${end}`)
    assert.equal(hex({ extra: { k: ['v', ''] } }), `${start}620a0a016b12050a01760a00${end}`)
  })

  it('rejects structs without a protobuf form', () => {
    const { protobuf: _none, ...plain } = item
    assert.throws(() => encodeMessage(plain, {}), /"v1\.Item" has no protobuf form/)
  })
})

describe('decodeMessage() from protobuf', () => {
  it('adds the fields that Go always writes to an empty message', () => {
    assert.equal(encodeJson(read('')), '{"always":"","verbs":null,"item":{}}')
  })

  it('treats zero in value fields as absent and in pointer fields as present', () => {
    assert.deepEqual(read('0a0010001a0020002800'), { ...nothing, pointer: 0 })
  })

  it('accepts fields in any order and skips unknown ones', () => {
    assert.deepEqual(
      read('1000 0a0178 f80101 f2010161 fd0100000000 f90100000000000000 00 fb01 0a00 fc01'.replaceAll(' ', ''), item),
      {
        name: 'x',
        size: 0,
      },
    )
  })

  it('accepts packed and unpacked repeated numbers', () => {
    assert.deepEqual(read('48014a0202034804')['numbers'], [1, 2, 3, 4])
  })

  it('round-trips messages and values', () => {
    const text = fc.string({ unit: 'binary' }).map((value) => value.toWellFormed())
    const base64 = fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64'))
    const itemValue = fc.record(
      { name: text.filter((value) => value !== ''), size: fc.integer() },
      { requiredKeys: [], noNullPrototype: true },
    )
    const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(narrow)
    const object = fc.record(
      {
        text: text.filter((value) => value !== ''),
        number: int64.filter((value) => value !== 0),
        pointer: int64,
        flag: fc.constant(true),
        ratio: fc.double({ noNaN: true }).filter((value) => value !== 0),
        bytes: base64.filter((value) => value !== ''),
        items: fc.array(itemValue, { minLength: 1 }),
        numbers: fc.array(fc.integer(), { minLength: 1 }),
        labels: fc.dictionary(text, text, { minKeys: 1, noNullPrototype: true }).map(sortMembers),
        secrets: fc.dictionary(text, base64, { minKeys: 1, noNullPrototype: true }).map(sortMembers),
        time: fc.constantFrom('2026-01-02T03:04:05Z', '1969-12-31T23:59:59Z', '0000-01-01T00:00:00Z'),
        micro: fc.constantFrom('2026-01-02T03:04:05.678901Z', '1969-12-31T23:59:59.000001Z'),
        quantity: fc.constantFrom('0', '1500m', '2Ki'),
        port: fc.oneof(fc.integer(), text),
        every: fc.constantFrom('0s', '1h30m0s', '-1ns'),
        raw: fc.constantFrom({ b: 1, a: [1, 'x'] }, 'x', 0, [null]),
        path: text.filter((value) => value !== ''),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(object, (generated) => {
        const bytes = encodeMessage(spec, { ...nothing, ...generated })
        const decoded = decodeMessage(spec, bytes)
        assert.deepEqual(decoded, { ...nothing, ...generated })
        assert.ok(encodeMessage(spec, decoded).equals(bytes))
      }),
      { numRuns: 200 },
    )
  })

  it('keeps __proto__ as a key and sorts keys', () => {
    const decoded = read('52060a016212013152 0e0a095f5f70726f746f5f5f120132'.replaceAll(' ', ''))
    assert.equal(encodeJson(decoded['labels']), '{"__proto__":"2","b":"1"}')
    assert.equal(Object.getPrototypeOf(decoded['labels']), Object.prototype)
  })

  it('decodes zero times as absent and rejects times beyond the calendar', () => {
    assert.equal(read('7a00')['time'], undefined)
    assert.equal(read('7a0408001000')['time'], '1970-01-01T00:00:00Z')
    assert.equal(read('7a0b088092b8c398feffffff01')['time'], undefined)
    assert.throws(() => read('7a0a08ffffffffffffffff7f'), { code: 'type' })
    assert.equal(read('82010d08011098f8ffffffffffffff01')['micro'], '1970-01-01T00:00:00.999999Z')
  })

  for (const [bytes, message] of [
    ['0801', 'proto: wrong wireType = 0 for field Name'],
    ['1201', 'proto: wrong wireType = 2 for field Size'],
    ['00', 'proto: Item: illegal tag 0 (wire type 0)'],
    ['0c', 'proto: Item: wiretype end group for non-group'],
    ['fe01', 'proto: illegal wireType 6'],
    ['0a', 'unexpected EOF'],
    ['0a05', 'unexpected EOF'],
    ['0aff', 'unexpected EOF'],
    ['0affffffff0f', 'unexpected EOF'],
    ['f90100', 'unexpected EOF'],
    ['fb01', 'unexpected EOF'],
    ['10ffffffffffffffffffff01', 'proto: integer overflow'],
  ] as const) {
    it(`rejects the bytes ${bytes} with upstream's error`, () => {
      assert.throws(
        () => read(bytes, item),
        (error) => error instanceof CodecError && error.message === message,
      )
    })
  }

  it('throws only CodecError for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          decodeMessage(spec, Buffer.from(bytes))
        } catch (error) {
          assert.ok(error instanceof CodecError, String(error))
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('rejects messages that are too many or nested too deeply', () => {
    const node: StructSchema = struct('v1.Node', [1, 'not', item, { pointer: true }])
    const inner = node.fields.get('not') as { schema: Schema }
    inner.schema = node
    let bytes = Buffer.alloc(0)
    for (let level = 0; level < 1_100; level++) {
      const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 127) | 128, bytes.length >> 7]
      bytes = Buffer.concat([Buffer.from([0x0a, ...length]), bytes])
    }
    assert.throws(() => decodeMessage(node, bytes), { code: 'depth' })
    assert.throws(() => decodeMessage(spec, Buffer.alloc(400, Buffer.from('4200', 'hex')), 100), { code: 'limit' })
  })
})

describe('protobuf form of union types', () => {
  const orBool = struct('v1.OrBool', [1, 'allows', scalar('boolean')], [2, 'schema', item, { pointer: true }])
  const orList = struct('v1.OrList', [1, 'schema', item, { pointer: true }], [2, 'property', listOf(scalar('string'))])
  const any = (alternatives: StructSchema): Schema => ({ type: 'any', goType: alternatives.goType, alternatives })
  const props = struct(
    'v1.Props',
    [1, 'more', any(orBool), { pointer: true }],
    [2, 'items', any(orList), { pointer: true }],
  )

  for (const [object, bytes] of [
    [{}, ''],
    [{ more: true }, '0a020801'],
    [{ more: false }, '0a020800'],
    [{ more: { name: 'a' } }, '0a07080112030a0161'],
    [{ items: { name: 'a' } }, '12050a030a0161'],
    [{ items: ['x', 'y'] }, '1206120178120179'],
  ] as const) {
    it(`is a message with a field for each alternative: ${JSON.stringify(object)}`, () => {
      assert.equal(hex(object as unknown as JsonObject, props), bytes)
      assert.deepEqual(read(bytes, props), object)
    })
  }
})

describe('protobuf envelope', () => {
  const gvk = { group: 'apps', version: 'v1', kind: 'Item' }

  it('contains apiVersion and kind of its message', () => {
    const bytes = encodeProtobuf(item, gvk, { name: 'x' })
    assert.equal(bytes.toString('latin1'), 'k8s\0\n\x0f\n\x07apps/v1\x12\x04Item\x12\x03\n\x01x\x1a\0"\0')
    const { apiVersion, kind, message } = decodeEnvelope(bytes)
    assert.deepEqual([apiVersion, kind, decodeMessage(item, message)], ['apps/v1', 'Item', { name: 'x' }])
    assert.ok(isProtobuf(bytes) && !isProtobuf(Buffer.from('k8s')))
  })

  it('wraps lists of encoded messages', () => {
    const metadata = Buffer.from('0a020a00', 'hex')
    const items = encodeListItems(item, [Buffer.from('a'), Buffer.from('bc')])
    assert.equal(items.toString('hex'), '12016112026263')
    const { head, tail } = encodeEnvelopeAround(gvk, metadata, items.length)
    assert.deepEqual(Buffer.concat([head, items, tail]), encodeEnvelope(gvk, Buffer.concat([metadata, items])))
  })

  for (const [bytes, message] of [
    ['', 'empty data'],
    ['k8s\0', 'empty body'],
    ['{"kind":"Pod"}', 'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]'],
    ['k8s\0\x12', 'unexpected EOF'],
    ['k8s\0\x12\x05a', 'unexpected EOF'],
  ] as const) {
    it(`is rejected if its bytes are ${JSON.stringify(bytes)}`, () => {
      assert.throws(() => decodeEnvelope(Buffer.from(bytes, 'latin1')), { message, code: 'syntax' })
    })
  }
})

function narrow(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
