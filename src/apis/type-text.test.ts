import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Schema, StructSchema } from '#meta/schema.ts'

import { parseType, type Resolver, SCALAR_LETTERS } from './type-text.ts'

const resolver: Resolver = { struct, part: (text) => parseType(text, resolver) }

function struct(goType: string): StructSchema {
  return { type: 'struct', goType, fields: new Map(), mapType: 'granular', preserveUnknown: false }
}

describe('parseType() of the generated API tables', () => {
  const text: Schema = { type: 'string', goType: 'string' }
  const cases: readonly [string, Schema][] = [
    ['s', text],
    ['s=v1.PodPhase', { type: 'string', goType: 'v1.PodPhase' }],
    ['y', { type: 'bytes', goType: '[]uint8' }],
    ['x', { type: 'int-or-string', goType: 'intstr.IntOrString' }],
    ['a=runtime.RawExtension', { type: 'any', goType: 'runtime.RawExtension' }],
    ['@PodSpec', struct('PodSpec')],
    ['?Either', { type: 'any', goType: 'Either', alternatives: struct('Either') }],
    ['[]s', { type: 'list', items: text, pointerItems: false }],
    ['[]@core.v1/Pod', { type: 'list', items: struct('core.v1/Pod'), pointerItems: false }],
    ['[v1.Rules]@Rule', { type: 'list', items: struct('Rule'), pointerItems: false, goType: 'v1.Rules' }],
    ['(v1.Verbs)s', { type: 'list', items: text, pointerItems: false, goType: 'v1.Verbs' }],
    ['{}s', { type: 'map', values: text }],
    ['{map[v1.Name]v1.Device}@Device', { type: 'map', values: struct('Device'), goType: 'map[v1.Name]v1.Device' }],
    ['{}()s', { type: 'map', values: { type: 'list', items: text, pointerItems: false } }],
  ]
  for (const [input, expected] of cases) {
    it(`parses "${input}" as ${expected.type}`, () => assert.deepEqual(parseType(input, resolver), expected))
  }

  it('has a letter for each scalar type', () => {
    assert.equal(new Set(Object.values(SCALAR_LETTERS).map(([type]) => type)).size, 11)
  })

  for (const wrong of ['', '!', 'z', '[]', '{}z']) {
    it(`rejects the type "${wrong}"`, () => assert.throws(() => parseType(wrong, resolver), /Unknown type/))
  }
})
