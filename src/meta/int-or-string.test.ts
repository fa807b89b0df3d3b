import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { intValue, isPercentage, parseIntOrString, scaledValue } from './int-or-string.ts'

describe('IntOrString', () => {
  it('parses int32 as numbers and other texts as strings', () => {
    assert.equal(parseIntOrString('80'), 80)
    assert.equal(parseIntOrString('http'), 'http')
    assert.equal(parseIntOrString('2147483648'), '2147483648')
    assert.equal(intValue('12'), 12)
    assert.equal(intValue('http'), 0)
    assert.equal(intValue(7), 7)
    assert.ok(isPercentage('5%') && !isPercentage('5') && !isPercentage(5))
  })

  for (const [value, total, up, down] of [
    [3, 10, 3, 3],
    ['25%', 10, 3, 2],
    ['100%', 7, 7, 7],
    ['0%', 7, 0, 0],
    ['-50%', 3, -1, -2],
    ['150%', 3, 5, 4],
  ] as const) {
    it(`rounds ${value} of ${total} up to ${up} and down to ${down}`, () => {
      assert.equal(scaledValue(value, total, 'up'), up)
      assert.equal(scaledValue(value, total, 'down'), down)
    })
  }

  for (const [value, message] of [
    [undefined, 'nil value for IntOrString'],
    ['5', 'invalid value for IntOrString: invalid type: string is not a percentage'],
    ['a%', 'invalid value for IntOrString: invalid value "a%": strconv.Atoi: parsing "a": invalid syntax'],
  ] as const) {
    it(`rejects ${value}`, () => assert.throws(() => scaledValue(value, 1, 'up'), { message }))
  }
})
