import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import fc from 'fast-check'

import { runAtOnce } from '#lib/time-slicing.ts'

import { equalInSteps, equalValues } from './equal.ts'

/** JSON text, so that inherited names become own members. */
const { text } = fc.letrec((tie) => ({
  text: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom('null', 'true', '0', '1', '"a"', '{}', '[]'),
    fc.array(tie('text'), { maxLength: 2 }).map((items) => `[${items.join(',')}]`),
    fc
      .uniqueArray(fc.tuple(fc.constantFrom('a', '__proto__', 'constructor'), tie('text')), {
        selector: ([name]) => name,
      })
      .map((members) => `{${members.map(([name, value]) => `"${name}":${String(value)}`).join(',')}}`),
  ),
}))

/** With sorted members. */
function ordered(json: string): string {
  return JSON.stringify(JSON.parse(json), (_, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? ['members', ...Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))]
      : value,
  )
}

describe('equality of JSON values', () => {
  it('agrees with a comparison of texts with sorted keys, at once and in steps', () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        const [left, right] = [JSON.parse(a) as unknown, JSON.parse(b) as unknown]
        const expected = ordered(a) === ordered(b)
        assert.equal(equalValues(left, right), expected)
        assert.equal(runAtOnce(equalInSteps(left, right)), expected)
      }),
    )
  })

  it('ignores members that objects inherit', () => {
    const sent = JSON.parse('{"__proto__":{}}') as unknown
    assert.equal(equalValues(sent, { other: {} }), false)
    assert.equal(runAtOnce(equalInSteps(sent, { other: {} })), false)
  })

  it('holds between bigint and number of the same value', () => {
    assert.equal(equalValues({ a: [1n] }, { a: [1] }), true)
    assert.equal(equalValues(2n ** 60n, 2 ** 60 + 256), false)
  })
})
