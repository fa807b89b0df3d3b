import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { escapeValue, filterFor } from './filter.ts'

describe('escapeValue() for LDAP filters', () => {
  const rows: readonly (readonly [text: string, escaped: string])[] = [
    ['jane.doe@x_1-2', 'jane.doe@x_1-2'],
    ['cn=a b,dc=x', 'cn=a b,dc=x'],
    ['*', '\\2a'],
    ['a)(uid=*', 'a\\29\\28uid=\\2a'],
    ['\\', '\\5c'],
    ['\0', '\\00'],
    ['a&b|c!d', 'a\\26b\\7cc\\21d'],
    ['~<>', '\\7e\\3c\\3e'],
    ['jürgen', 'jürgen'],
    ['\n', '\\0a'],
  ]
  for (const [text, escaped] of rows)
    it(`writes ${JSON.stringify(text)} as ${escaped}`, () => assert.equal(escapeValue(text), escaped))
})

describe('filterFor() for LDAP searches', () => {
  it('matches one value, or any of several', () => {
    assert.equal(filterFor('(objectClass=person)', 'uid', ['a*']), '(&(objectClass=person)(uid=a\\2a))')
    assert.equal(filterFor('(a=b)', 'member', ['x', 'y']), '(&(a=b)(|(member=x)(member=y)))')
  })
})
