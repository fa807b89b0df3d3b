import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseJson } from '#lib/json/json.ts'

import { normalizeUntyped } from './untyped.ts'

describe('normalizeUntyped() for values', () => {
  for (const [given, expected] of [
    ['{"b":1,"a":{"d":2,"c":[{"f":1,"e":2}]}}', '{"a":{"c":[{"e":2,"f":1}],"d":2},"b":1}'],
    ['[1.0,1e2,-0,1.5,null,"x"]', '[1,100,0,1.5,null,"x"]'],
    ['{"b":null,"__proto__":{"z":1,"y":[]}}', '{"__proto__":{"y":[],"z":1},"b":null}'],
    ['"x"', '"x"'],
    ['1.0', '1'],
  ] as const) {
    it(`normalizes ${given} to ${expected}`, () => {
      assert.equal(JSON.stringify(normalizeUntyped(parseJson(given, { exactNumbers: true }))), expected)
    })
  }

  it('keeps every int64 and rejects numbers beyond the range of doubles', () => {
    assert.deepEqual(normalizeUntyped(parseJson('[9223372036854775807]')), [9223372036854775807n])
    assert.throws(() => normalizeUntyped(parseJson('{"a":1e400}', { exactNumbers: true })), {
      message: 'json: cannot unmarshal number 1e400 into Go value of type float64',
    })
  })

  it('handles values of any depth', () => {
    let value: unknown = { b: 1, a: 2 }
    for (let level = 0; level < 100_000; level++) value = [value]
    normalizeUntyped(value)
    for (let level = 0; level < 100_000; level++) value = (value as unknown[])[0]
    assert.equal(JSON.stringify(value), '{"a":2,"b":1}')
  })
})
