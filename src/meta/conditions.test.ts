import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'

import {
  type Condition,
  findCondition,
  isConditionFalse,
  isConditionTrue,
  removeCondition,
  setCondition,
  validateConditions,
} from './conditions.ts'
import { fieldErrorText } from './validation/field-error.ts'
import { fieldPath } from './validation/field-path.ts'
import { initialEventsEnd, isInitialEventsEnd } from './watch.ts'

describe('setCondition()', () => {
  it('changes lastTransitionTime only if the status changes', async () => {
    const clock = createVirtualClock(Date.UTC(2026, 0, 1))
    const conditions: { type: string; status: string; reason?: string; lastTransitionTime?: string }[] = []
    assert.ok(setCondition(conditions, { type: 'Ready', status: 'False', reason: 'Waiting' }, clock))
    await clock.advance(60_000)
    assert.ok(!setCondition(conditions, { type: 'Ready', status: 'False', reason: 'Waiting' }, clock))
    assert.ok(setCondition(conditions, { type: 'Ready', status: 'False' }, clock))
    assert.deepEqual(conditions, [{ type: 'Ready', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' }])
    assert.ok(setCondition(conditions, { type: 'Ready', status: 'True' }, clock))
    assert.equal(findCondition(conditions, 'Ready')?.lastTransitionTime, '2026-01-01T00:01:00Z')
    const given = { type: 'Ready', status: 'False', lastTransitionTime: '2020-01-01T00:00:00Z' }
    assert.ok(setCondition(conditions, given, clock))
    assert.equal(findCondition(conditions, 'Ready')?.lastTransitionTime, '2020-01-01T00:00:00Z')
  })
})

describe('predicates of conditions', () => {
  it('return false for an absent condition, for the statuses True and False', () => {
    const conditions = [
      { type: 'A', status: 'True' },
      { type: 'B', status: 'False' },
    ]
    assert.ok(isConditionTrue(conditions, 'A') && isConditionFalse(conditions, 'B'))
    assert.ok(
      !isConditionTrue(conditions, 'C') && !isConditionFalse(conditions, 'C') && !isConditionTrue(undefined, 'A'),
    )
    assert.ok(removeCondition(conditions, 'A') && !removeCondition(conditions, 'A'))
    assert.deepEqual(conditions, [{ type: 'B', status: 'False' }])
  })
})

describe('validateConditions()', () => {
  it('reports every invalid condition', () => {
    const good: Condition = {
      type: 'Ready',
      status: 'True',
      lastTransitionTime: '2026-01-01T00:00:00Z',
      reason: 'A:B',
      message: '',
    }
    assert.deepEqual(validateConditions(fieldPath('status.conditions'), [good]), [])
    const bad = { ...good, status: 'Yes' as 'True', observedGeneration: -1, lastTransitionTime: '', reason: '1' }
    const texts = validateConditions(fieldPath('c'), [good, bad, { ...good, type: 'T', reason: '' }]).map((error) =>
      fieldErrorText(error).slice(0, 90),
    )
    assert.deepEqual(texts, [
      'c[1].type: Duplicate value: "Ready"',
      'c[1].status: Unsupported value: "Yes": supported values: "False", "True", "Unknown"',
      'c[1].observedGeneration: Invalid value: -1: must be greater than or equal to zero',
      'c[1].lastTransitionTime: Required value',
      'c[1].reason: Invalid value: "1": a condition reason must start with alphabetic character, ',
      'c[2].reason: Required value',
    ])
  })
})

describe('watch events with bookmarks', () => {
  it('mark the end of the initial events by an annotation', () => {
    const object = { metadata: { resourceVersion: '1', annotations: { [initialEventsEnd]: 'true' } } }
    assert.ok(isInitialEventsEnd({ type: 'BOOKMARK', object }))
    assert.ok(!isInitialEventsEnd({ type: 'ADDED', object }))
    assert.ok(!isInitialEventsEnd({ type: 'BOOKMARK', object: { metadata: {} } }))
  })
})
