import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { aggregateText, fieldErrorBody, fieldErrorText, shownErrors } from './field-error.ts'
import { asJson, type FieldError, fieldPath, verbatim, withErrorLimit, withOrigin } from './field-path.ts'

describe('path of a field error', () => {
  it('is built from names, indexes and keys', () => {
    assert.equal(String(fieldPath('').child('spec')), 'spec')
    assert.equal(String(fieldPath('spec').child('template').child('spec')), 'spec.template.spec')
    assert.equal(String(fieldPath('spec').child('template.spec')), 'spec.template.spec')
    assert.equal(String(fieldPath('a').index(1).key('k.l').child('c')), 'a[1][k.l].c')
    assert.equal(String(fieldPath('').index(0)), '[0]')
  })

  it('recognizes the root', () => {
    assert.equal(fieldPath('').isRoot, true)
    assert.equal(fieldPath('').index(0).isRoot, false)
  })
})

describe('field error', () => {
  const table: [FieldError, string][] = [
    [fieldPath('p').invalid(0, 'must be greater than 0'), 'p: Invalid value: 0: must be greater than 0'],
    [fieldPath('p').invalid('', 'bad'), 'p: Invalid value: "": bad'],
    [fieldPath('p').invalid('a"\n', 'bad'), 'p: Invalid value: "a\\"\\n": bad'],
    [fieldPath('p').invalid(true, ''), 'p: Invalid value: true'],
    [fieldPath('p').invalid(1.5, 'd'), 'p: Invalid value: 1.5: d'],
    [fieldPath('p').invalid(2n ** 63n, 'd'), 'p: Invalid value: 9223372036854775808: d'],
    [fieldPath('p').invalid(null, 'd'), 'p: Invalid value: null: d'],
    [fieldPath('p').invalid(undefined, 'd'), 'p: Invalid value: null: d'],
    [fieldPath('p').invalid(['a', '<'], 'd'), 'p: Invalid value: ["a","\\u003c"]: d'],
    [fieldPath('p').invalid({ a: { b: 1 } }, 'd'), 'p: Invalid value: {"a":{"b":1}}: d'],
    [fieldPath('p').invalid(asJson('<x>'), 'd'), 'p: Invalid value: "\\u003cx\\u003e": d'],
    [fieldPath('p').invalid(verbatim('core.X{}'), 'd'), 'p: Invalid value: core.X{}: d'],
    [fieldPath('p').typeInvalid(3, 't'), 'p: Invalid value: 3: t'],
    [fieldPath('p').required(), 'p: Required value'],
    [fieldPath('p').required('name it'), 'p: Required value: name it'],
    [fieldPath('p').notFound('x'), 'p: Not found: "x"'],
    [fieldPath('p').duplicate('a'), 'p: Duplicate value: "a"'],
    [fieldPath('p').forbidden('no'), 'p: Forbidden: no'],
    [fieldPath('p').notSupported('x', ['B', 'A']), 'p: Unsupported value: "x": supported values: "B", "A"'],
    [fieldPath('p').notInSet('x', new Set(['B', 'A'])), 'p: Unsupported value: "x": supported values: "A", "B"'],
    [fieldPath('p').notSupported('x', []), 'p: Unsupported value: "x"'],
    [fieldPath('p').tooLong(262_144), 'p: Too long: may not be more than 262144 bytes'],
    [fieldPath('p').tooLong(1), 'p: Too long: may not be more than 1 byte'],
    [fieldPath('p').tooLong(2, 'character'), 'p: Too long: may not be more than 2 characters'],
    [fieldPath('p').tooLong(-1), 'p: Too long: value is too long'],
    [fieldPath('p').tooShort('a', 1), 'p: Too short: must be at least 1 character'],
    [fieldPath('p').tooMany(3, 1), 'p: Too many: 3: must have at most 1 item'],
    [fieldPath('p').tooMany(-1, 2), 'p: Too many: must have at most 2 items'],
    [fieldPath('p').tooMany(3, -1), 'p: Too many: 3: has too many items'],
    [fieldPath('p').tooFew(0, 2), 'p: Too few: 0: must have at least 2 items'],
    [fieldPath('p').internal(new Error('boom')), 'p: Internal error: boom'],
  ]
  for (const [error, text] of table) it(`has the text ${text}`, () => assert.equal(fieldErrorText(error), text))

  it('is joined with other errors, each text once', () => {
    assert.equal(aggregateText([]), '')
    assert.equal(aggregateText([fieldPath('a').required(), fieldPath('a').required()]), 'a: Required value')
    assert.equal(
      aggregateText([fieldPath('a').required(), fieldPath('b').required(), fieldPath('a').required()]),
      '[a: Required value, b: Required value]',
    )
  })

  it('shows a bounded part of large values and of many errors', () => {
    const owners = Array.from({ length: 20_000 }, (_, n) => ({ name: `owner-${n}` }))
    const errors = owners.map(() => fieldPath('metadata.ownerReferences').invalid(owners, 'd'))
    const text = aggregateText(errors)
    assert.ok(text.length < 300_000, String(text.length))
    assert.match(text, /and \d+ more errors\]$/)
    assert.match(
      fieldErrorBody(fieldPath('p').invalid('x'.repeat(100_000), 'd')),
      /^Invalid value: "x{65536}"\.\.\. \(34464 more characters\): d$/,
    )
    assert.equal(
      fieldErrorBody(fieldPath('p').invalid('x'.repeat(60_000), 'd')).length,
      60_000 + 'Invalid value: "": d'.length,
    )
  })

  it('shows a value that several errors contain only once', () => {
    let writes = 0
    const value = {
      toJSON: () => {
        writes++
        return ['x'.repeat(10)]
      },
    }
    const errors = Array.from({ length: 50 }, (_, n) => fieldPath('p').index(n).invalid(value, 'd'))
    const text = aggregateText(errors)
    assert.equal(shownErrors(errors).length, 50)
    assert.ok(text.includes('p[49]: Invalid value: ["xxxxxxxxxx"]: d'), text.slice(-100))
    assert.equal(writes, 1)
  })

  it('aborts a validation with too many errors', () => {
    let looked = 0
    const errors = withErrorLimit(() =>
      Array.from({ length: 100_000 }, () => {
        looked++
        return fieldPath('a').required()
      }),
    )
    assert.deepEqual([errors.length, looked], [10_001, 10_001])
    assert.deepEqual(
      withErrorLimit(() => [fieldPath('b').required()]),
      [fieldPath('b').required()],
    )
    assert.throws(() => withErrorLimit(() => assert.fail('other')), /other/)
  })

  it('may have an origin, the violated rule, which its text omits', () => {
    assert.equal(withOrigin('maximum', [fieldPath('p').invalid(1, 'd')])[0]?.origin, 'maximum')
    assert.equal(fieldErrorBody(fieldPath('p').invalid(1, 'd', 'minimum')), 'Invalid value: 1: d')
  })
})
