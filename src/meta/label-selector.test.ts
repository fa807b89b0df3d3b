import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import {
  asSelector,
  hasInvalidLabelValue,
  type LabelSelector,
  labelSelectorAsMap,
  labelSelectorText,
  parseLabelSelector,
  validateLabelSelector,
} from './label-selector.ts'
import { everything, nothing } from './labels.ts'
import { fieldErrorText } from './validation/field-error.ts'
import { fieldPath } from './validation/field-path.ts'

const full: LabelSelector = {
  matchLabels: { app: 'web' },
  matchExpressions: [
    { key: 't', operator: 'In', values: ['y', 'x'] },
    { key: 'old', operator: 'DoesNotExist' },
    { key: 'a', operator: 'Exists' },
    { key: 'z', operator: 'NotIn', values: ['q'] },
  ],
}

describe('asSelector() of a LabelSelector', () => {
  it('selects nothing if it is absent and everything if it is empty', () => {
    assert.equal(asSelector(undefined), nothing)
    assert.equal(asSelector(null), nothing)
    assert.equal(asSelector({}), everything)
  })

  it('rejects unknown operators', () => {
    const selector = { matchExpressions: [{ key: 'a', operator: 'Gt' as 'In', values: ['1'] }] }
    assert.throws(() => asSelector(selector), { message: '"Gt" is not a valid label selector operator' })
  })
})

describe('labelSelectorText()', () => {
  it('formats selectors as in Scale and tables', () => {
    assert.equal(labelSelectorText(full), 'a,app=web,!old,t in (x,y),z notin (q)')
    assert.equal(labelSelectorText(undefined), '<none>')
    assert.equal(labelSelectorText({}), '<none>')
    assert.equal(labelSelectorText({ matchLabels: { '': '' } }), '<error>')
  })
})

describe('parseLabelSelector()', () => {
  it('returns a LabelSelector', () => {
    assert.deepEqual(parseLabelSelector('app=web,a,!old,t in (y,x)'), {
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'a', operator: 'Exists', values: [] },
        { key: 'old', operator: 'DoesNotExist', values: [] },
        { key: 't', operator: 'In', values: ['x', 'y'] },
      ],
    })
  })

  it('rejects the operators > and <', () => {
    assert.throws(() => parseLabelSelector('a>1'), { message: `"gt" isn't supported in label selectors` })
    assert.throws(() => parseLabelSelector(','), /^Error: couldn't parse the selector string ",": found ','/)
  })
})

describe('labelSelectorAsMap()', () => {
  it('accepts equality and sets of one value', () => {
    const selector: LabelSelector = {
      matchLabels: { a: '1' },
      matchExpressions: [{ key: 'b', operator: 'In', values: ['2'] }],
    }
    assert.deepEqual(labelSelectorAsMap(selector), { a: '1', b: '2' })
    assert.throws(() => labelSelectorAsMap(full), {
      message: 'operator "In" without a single value cannot be converted into the old label selector format',
    })
  })
})

describe('validateLabelSelector()', () => {
  it('reports every invalid value with its path', () => {
    const selector: LabelSelector = {
      matchLabels: { a: '!' },
      matchExpressions: [
        { key: 'a', operator: 'In' },
        { key: 'b', operator: 'Exists', values: ['x'] },
        { key: '', operator: 'Like' as 'In', values: ['!'] },
      ],
    }
    const texts = validateLabelSelector(fieldPath('spec.selector'), selector).map((error) =>
      fieldErrorText(error).slice(0, 110),
    )
    assert.deepEqual(texts, [
      'spec.selector.matchLabels: Invalid value: "!": a valid label must be an empty string or consist of alphanumeri',
      "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
      "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'Does",
      'spec.selector.matchExpressions[2].operator: Invalid value: "Like": not a valid selector operator',
      'spec.selector.matchExpressions[2].key: Invalid value: "": name part must be non-empty',
      `spec.selector.matchExpressions[2].key: Invalid value: "": name part must consist of alphanumeric characters, '`,
      'spec.selector.matchExpressions[2].values[0]: Invalid value: "!": a valid label must be an empty string or cons',
    ])
    assert.deepEqual(validateLabelSelector(fieldPath('s'), undefined), [])
    assert.deepEqual(validateLabelSelector(fieldPath('s'), full), [])
    assert.ok(hasInvalidLabelValue(selector) && !hasInvalidLabelValue(full))
  })

  it('accepts invalid values of the old object', () => {
    const selector: LabelSelector = { matchExpressions: [{ key: 'a', operator: 'Like' as 'In', values: ['!'] }] }
    assert.deepEqual(
      validateLabelSelector(fieldPath('s'), selector, { invalidValues: true, unknownOperators: true }),
      [],
    )
  })
})
