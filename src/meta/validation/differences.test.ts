import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { differencesText } from './differences.ts'

describe('differencesText() of two objects', () => {
  it('lists changed, added and removed fields, one per line', () => {
    const old = { replicas: 1, nested: { list: ['a', 'b'], gone: true }, same: { x: 1 } }
    const next = { replicas: 2, nested: { list: ['a', 'c', 'd'] }, same: { x: 1 }, came: 'x' }
    assert.equal(
      differencesText('spec', old, next),
      [
        '  spec.replicas: 1 -> 2',
        '  spec.nested.list[1]: "b" -> "c"',
        '  spec.nested.list[2]: <unset> -> "d"',
        '  spec.nested.gone: true -> <unset>',
        '  spec.came: <unset> -> "x"',
      ].join('\n'),
    )
  })

  it('prints whole values if their types differ', () => {
    assert.equal(differencesText('a', [1], { x: 1 }), '  a: [1] -> {"x":1}')
  })

  it('counts the differences beyond a limit', () => {
    const next = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`f${at}`, at]))
    const lines = differencesText('a', {}, next).split('\n')
    assert.equal(lines.length, 17)
    assert.equal(lines.at(-1), '  and 4 more')
  })

  it('handles fields named like members of Object.prototype', () => {
    const next = JSON.parse('{"__proto__":{"x":1},"constructor":2}') as object
    assert.equal(differencesText('a', {}, next), '  a.__proto__: <unset> -> {"x":1}\n  a.constructor: <unset> -> 2')
  })
})
