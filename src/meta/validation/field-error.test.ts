import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  aggregateText,
  asJson,
  child,
  duplicate,
  type FieldError,
  fieldErrorBody,
  fieldErrorText,
  forbidden,
  index,
  internal,
  invalid,
  key,
  notFound,
  notInSet,
  notSupported,
  required,
  tooFew,
  tooLong,
  tooMany,
  tooShort,
  typeInvalid,
  verbatim,
  withErrorLimit,
  withOrigin,
} from './field-error.ts'

describe('field paths', () => {
  it('are built from names, indexes and keys', () => {
    assert.equal(child('', 'spec'), 'spec')
    assert.equal(child('spec', 'template', 'spec'), 'spec.template.spec')
    assert.equal(child(key(index('a', 1), 'k.l'), 'c'), 'a[1][k.l].c')
  })
})

describe('field errors', () => {
  const table: [FieldError, string][] = [
    [invalid('p', 0, 'must be greater than 0'), 'p: Invalid value: 0: must be greater than 0'],
    [invalid('p', '', 'bad'), 'p: Invalid value: "": bad'],
    [invalid('p', 'a"\n', 'bad'), 'p: Invalid value: "a\\"\\n": bad'],
    [invalid('p', true, ''), 'p: Invalid value: true'],
    [invalid('p', 1.5, 'd'), 'p: Invalid value: 1.5: d'],
    [invalid('p', 2n ** 63n, 'd'), 'p: Invalid value: 9223372036854775808: d'],
    [invalid('p', null, 'd'), 'p: Invalid value: null: d'],
    [invalid('p', undefined, 'd'), 'p: Invalid value: null: d'],
    [invalid('p', ['a', '<'], 'd'), 'p: Invalid value: ["a","\\u003c"]: d'],
    [invalid('p', { a: { b: 1 } }, 'd'), 'p: Invalid value: {"a":{"b":1}}: d'],
    [invalid('p', asJson('<x>'), 'd'), 'p: Invalid value: "\\u003cx\\u003e": d'],
    [invalid('p', verbatim('core.X{}'), 'd'), 'p: Invalid value: core.X{}: d'],
    [typeInvalid('p', 3, 't'), 'p: Invalid value: 3: t'],
    [required('p'), 'p: Required value'],
    [required('p', 'name it'), 'p: Required value: name it'],
    [notFound('p', 'x'), 'p: Not found: "x"'],
    [duplicate('p', 'a'), 'p: Duplicate value: "a"'],
    [forbidden('p', 'no'), 'p: Forbidden: no'],
    [notSupported('p', 'x', ['B', 'A']), 'p: Unsupported value: "x": supported values: "B", "A"'],
    [notInSet('p', 'x', new Set(['B', 'A'])), 'p: Unsupported value: "x": supported values: "A", "B"'],
    [notSupported('p', 'x', []), 'p: Unsupported value: "x"'],
    [tooLong('p', 262_144), 'p: Too long: may not be more than 262144 bytes'],
    [tooLong('p', 1), 'p: Too long: may not be more than 1 byte'],
    [tooLong('p', 2, 'character'), 'p: Too long: may not be more than 2 characters'],
    [tooLong('p', -1), 'p: Too long: value is too long'],
    [tooShort('p', 'a', 1), 'p: Too short: must be at least 1 character'],
    [tooMany('p', 3, 1), 'p: Too many: 3: must have at most 1 item'],
    [tooMany('p', -1, 2), 'p: Too many: must have at most 2 items'],
    [tooMany('p', 3, -1), 'p: Too many: 3: has too many items'],
    [tooFew('p', 0, 2), 'p: Too few: 0: must have at least 2 items'],
    [internal('p', new Error('boom')), 'p: Internal error: boom'],
  ]
  for (const [error, text] of table) it(`reads ${text}`, () => assert.equal(fieldErrorText(error), text))

  it('are joined, each text once', () => {
    assert.equal(aggregateText([]), '')
    assert.equal(aggregateText([required('a'), required('a')]), 'a: Required value')
    assert.equal(aggregateText([required('a'), required('b'), required('a')]), '[a: Required value, b: Required value]')
  })

  it('show a bounded part of large values and of many errors', () => {
    const owners = Array.from({ length: 20_000 }, (_, n) => ({ name: `owner-${n}` }))
    const errors = owners.map(() => invalid('metadata.ownerReferences', owners, 'd'))
    const text = aggregateText(errors)
    assert.ok(text.length < 300_000, String(text.length))
    assert.match(text, /and \d+ more errors\]$/)
    assert.match(
      fieldErrorBody(invalid('p', 'x'.repeat(100_000), 'd')),
      /^Invalid value: "x{65536}"\.\.\. \(34464 more characters\): d$/,
    )
    assert.equal(fieldErrorBody(invalid('p', 'x'.repeat(60_000), 'd')).length, 60_000 + 'Invalid value: "": d'.length)
  })

  it('end a validation that makes too many of them', () => {
    let looked = 0
    const errors = withErrorLimit(() =>
      Array.from({ length: 100_000 }, () => {
        looked++
        return required('a')
      }),
    )
    assert.deepEqual([errors.length, looked], [10_001, 10_001])
    assert.deepEqual(
      withErrorLimit(() => [required('b')]),
      [required('b')],
    )
    assert.throws(() => withErrorLimit(() => assert.fail('other')), /other/)
  })

  it('may name the rule that refused', () => {
    assert.equal(withOrigin('maximum', [invalid('p', 1, 'd')])[0]?.origin, 'maximum')
    assert.equal(fieldErrorBody(invalid('p', 1, 'd', 'minimum')), 'Invalid value: 1: d')
  })
})
