import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { FieldSchema, Schema, StructSchema } from '../schema.ts'
import { restore } from './restore.ts'

const text: Schema = { type: 'string', goType: 'v1.Name' }
const int32: Schema = { type: 'int32', goType: 'int32' }
const int64: Schema = { type: 'int64', goType: 'int64' }

function struct(goType: string, fields: Record<string, Schema>): StructSchema {
  const field = ([name, schema]: [string, Schema]): [string, FieldSchema] => [
    name,
    { name, schema, required: false, pointer: false, omitEmpty: true },
  ]
  return {
    type: 'struct',
    goType,
    fields: new Map(Object.entries(fields).map(field)),
    mapType: 'granular',
    preserveUnknown: false,
  }
}

const inner = struct('v1.Inner', { name: text })
const schema = struct('v1.Outer', {
  small: int32,
  large: int64,
  half: { type: 'float64', goType: 'float64' },
  on: { type: 'boolean', goType: 'bool' },
  raw: { type: 'bytes', goType: '[]uint8' },
  either: { type: 'int-or-string', goType: 'intstr.IntOrString' },
  list: { type: 'list', items: inner, pointerItems: false },
  map: { type: 'map', values: inner },
})

describe('restore() of typed values from JSON', () => {
  it('converts all values of the expected type', () => {
    const value = {
      small: 1,
      on: true,
      raw: 'YQ==',
      either: '5%',
      list: [{ name: 'a' }, null],
      map: { k: { name: 'b' } },
    }
    assert.deepEqual(restore(schema, value), { value, unknown: [] })
  })

  it('wraps integers out of range, like Go', () => {
    const value = { small: 5e9, large: 1e20, half: 2n ** 60n }
    assert.deepEqual(restore(schema, value).value, { small: 705032704, large: -(2n ** 63n), half: 2 ** 60 })
  })

  it('reports unknown fields in order, but no map keys', () => {
    const value = { z: 1, list: [{ y: 1 }], map: { k: { x: 1 } } }
    const unknown = ['unknown field "list[0].y"', 'unknown field "map.x"', 'unknown field "z"']
    assert.deepEqual(restore(schema, value).unknown, unknown)
  })

  it('fails at the first type mismatch in field order', () => {
    for (const [value, message] of [
      [{ large: 'x', small: 'x' }, 'unrecognized type: int32'],
      [{ large: 1.5 }, 'cannot convert float64 to int64'],
      [{ half: 'x' }, 'unrecognized type: float64'],
      [{ raw: 5 }, 'cannot restore slice from int64'],
      [{ list: [{ name: 5 }] }, 'cannot convert int64 to v1.Name'],
      [{ list: [{ name: 1.5 }] }, 'unrecognized type: string'],
      [{ map: [] }, 'cannot restore map from slice'],
      [{ map: { k: 1.5 } }, 'cannot restore struct from: float64'],
      [{ either: true }, 'json: cannot unmarshal bool into Go value of type int32'],
    ] as const) {
      assert.throws(() => restore(schema, value), { name: 'CodecError', message })
    }
  })
})
