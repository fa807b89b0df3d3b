import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { tolerates, toleratesNumbers, tolerationRule } from './fit.ts'

describe('toleration with a numeric comparison', () => {
  const cases: readonly [operator: string, bound: string, value: string, isTolerated: boolean][] = [
    ['Lt', '10', '9', true],
    ['Lt', '10', '10', false],
    ['Lt', '-1', '-2', true],
    ['Gt', '10', '11', true],
    ['Gt', '10', '9', false],
    ['Gt', '9007199254740993', '9007199254740994', true],
    ['Gt', '09', '10', false],
    ['Gt', '1', '+2', false],
    ['Lt', '9223372036854775808', '1', false],
    ['Gt', '', '1', false],
  ]
  for (const [operator, value, there, isTolerated] of cases)
    it(`${operator} ${value} ${isTolerated ? 'tolerates' : 'does not tolerate'} the taint value ${there}`, () => {
      const taint = { key: 'k', value: there, effect: 'NoSchedule' }
      assert.equal(toleratesNumbers({ key: 'k', operator, value }, taint), isTolerated)
      assert.equal(tolerates({ key: 'k', operator, value }, taint), false, 'without them')
      assert.equal(toleratesNumbers({ key: 'other', operator, value }, taint), false)
      assert.equal(toleratesNumbers({ key: 'k', operator, value, effect: 'NoExecute' }, taint), false)
    })

  it('leaves the result of other operators unchanged', () => {
    const taint = { key: 'k', value: '1', effect: 'NoSchedule' }
    assert.equal(toleratesNumbers({ key: 'k', operator: 'Equal', value: '1' }, taint), true)
    assert.equal(toleratesNumbers({ operator: 'Exists' }, taint), true)
  })
})

describe('tolerationRule() of controllers', () => {
  it('compares numbers only with the feature gate', () => {
    assert.equal(
      tolerationRule((gate) => gate === 'TaintTolerationComparisonOperators'),
      toleratesNumbers,
    )
    assert.equal(
      tolerationRule(() => false),
      tolerates,
    )
  })
})
