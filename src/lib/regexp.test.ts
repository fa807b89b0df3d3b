import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import * as fc from 'fast-check'

import { compileRegexp } from './regexp.ts'

describe('compileRegexp', () => {
  it('rejects patterns that Go rejects, with its errors', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['[a', 'missing closing ]: `[a`'],
      ['(a', 'missing closing ): `(a`'],
      ['a)', 'unexpected ): `a)`'],
      ['*a', 'missing argument to repetition operator: `*`'],
      ['a**', 'invalid nested repetition operator: `**`'],
      ['a{2,1}', 'invalid repeat count: `{2,1}`'],
      ['a{1001}', 'invalid repeat count: `{1001}`'],
      ['[b-a]', 'invalid character class range: `b-a`'],
      ['(?=a)', 'invalid or unsupported Perl syntax: `(?=`'],
      [String.raw`\1`, String.raw`invalid escape sequence: ` + '`\\1`'],
      ['a\\', 'trailing backslash at end of expression: ``'],
    ]
    for (const [source, message] of cases) {
      assert.throws(
        () => compileRegexp(source),
        { name: 'RegexpError', message: `error parsing regexp: ${message}` },
        source,
      )
    }
  })

  it('matches at any position unless the pattern is anchored', () => {
    assert.equal(compileRegexp('b+').test('abbc'), true)
    assert.equal(compileRegexp('^b+$').test('abbc'), false)
    assert.equal(compileRegexp('(?i)^ABC$').test('abc'), true)
    assert.equal(compileRegexp(String.raw`^\p{Greek}+$`).test('αβγ'), true)
    assert.equal(compileRegexp('^.$').test('😀'), true)
  })

  it('returns matches and their groups', () => {
    assert.deepEqual(compileRegexp('(a)|(b)(c)?').find('xbc'), ['bc', undefined, 'b', 'c'])
    assert.deepEqual(compileRegexp('(?P<n>x)(y)?').find('x'), ['x', 'x', undefined])
    assert.equal(compileRegexp('z').find('abc'), undefined)
    assert.deepEqual(compileRegexp('a.').findAll('a1 a2 a3'), ['a1', 'a2', 'a3'])
    assert.deepEqual(compileRegexp('a.').findAll('a1 a2 a3', 2), ['a1', 'a2'])
    assert.deepEqual(compileRegexp('a*').findAll('baac'), ['', 'aa', ''])
  })

  it('takes linear time for patterns for which native expressions take exponential time', () => {
    assert.equal(compileRegexp('^(a+)+$').test(`${'a'.repeat(5_000)}b`), false)
    assert.equal(compileRegexp('(x+x+)+y').test('x'.repeat(5_000)), false)
  })

  it('agrees with native expressions on simple patterns', () => {
    const pattern = fc
      .array(fc.constantFrom('a', 'b', 'a*', 'b+', 'a?', '[ab]', '(?:a|b)', '.', '^', '$'))
      .map((parts) => parts.join(''))
    const text = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 8 }).map((parts) => parts.join(''))
    fc.assert(
      fc.property(pattern, text, (source, given) => {
        assert.equal(compileRegexp(source).test(given), new RegExp(source).test(given))
      }),
    )
  })

  it('caches a limited number of compiled patterns', () => {
    const first = compileRegexp('first')
    assert.equal(compileRegexp('first'), first)
    for (let index = 0; index < 600; index++) compileRegexp(`p${index}`)
    assert.notEqual(compileRegexp('first'), first)
  })
})
