import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { claimMap, configurationMap, namedCertificates, portRange } from './flag-kinds.ts'

describe('port range flag', () => {
  for (const [text, first, last] of [
    ['30000-32767', 30_000, 32_767],
    ['80', 80, 80],
    ['80+10', 80, 90],
    ['65530+100', 65_530, 65_535],
  ] as const) {
    it(`accepts ${text}`, () => assert.deepEqual(portRange.parse(text), { first, last }))
  }
  for (const text of ['', 'a-b', '90-80', '1-70000', '1-2-3', '-5']) {
    it(`rejects "${text}"`, () => assert.throws(() => portRange.parse(text)))
  }
  it('prints a value in the form that it parses', () =>
    assert.equal(portRange.print(portRange.parse('80+10')), '80-90'))
})

describe('named certificates flag', () => {
  it('prints a value in the form that it parses, and collects several values', () => {
    const one = namedCertificates.parse('a.crt, a.key:*.x,y')
    const both = namedCertificates.join?.(one, namedCertificates.parse('b.crt,b.key')) ?? []
    assert.equal(namedCertificates.print(both), '[a.crt,a.key:*.x,y;b.crt,b.key]')
  })
  for (const text of ['', 'a', 'a,b,c', ',b', 'a,b:c:d']) {
    it(`rejects "${text}"`, () => assert.throws(() => namedCertificates.parse(text)))
  }
})

describe('map flags', () => {
  it('accept a key without a value as an empty value', () => {
    assert.deepEqual(
      [...configurationMap.parse('a=b, c,d=e=f')],
      [
        ['a', 'b'],
        ['c', ''],
        ['d', 'e=f'],
      ],
    )
  })
  it('accept commas in the value of an OpenID claim', () => {
    assert.deepEqual([...claimMap.parse('a=b,c=d')], [['a', 'b,c=d']])
    assert.throws(() => claimMap.parse('a'))
  })
})
