import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { defineFlags, flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'

import { causeOf, RECORD_FLAG, recorded, recordPatch } from './recording.ts'

const SET = defineFlags({
  own: { ...RECORD_FLAG, filename: flag(string, '', '', { shorthand: 'f' }), token: flag(string, '', '') },
})

describe('change cause of kubectl --record', () => {
  it('has arguments before flags and full names of flags', () => {
    assert.equal(
      causeOf(SET, ['-f', 'a.yaml', 'apply', '--record', 'x']),
      'kubectl apply x --filename=a.yaml --record=true',
    )
  })

  it('hides credentials', () => {
    assert.equal(causeOf(SET, ['apply', '--token', 'secret']), 'kubectl apply --token=CLASSIFIED')
  })
})

describe('annotation of kubectl --record', () => {
  const object = { metadata: { name: 'a', annotations: { b: 'c' } } }
  const changeCause = (): string => 'kubectl x'
  const cause = { 'kubernetes.io/change-cause': 'kubectl x' }

  it('is added only if the flag is set', () => {
    assert.equal(recorded({ flags: { record: false }, changeCause }, object), object)
    assert.deepEqual(recorded({ flags: { record: true }, changeCause }, object), {
      metadata: { name: 'a', annotations: { b: 'c', ...cause } },
    })
  })

  it('needs no patch if the object has it already', () => {
    const recording = { flags: { record: true }, changeCause }
    assert.deepEqual(recordPatch(recording, object), { metadata: { annotations: cause } })
    assert.equal(recordPatch(recording, { metadata: { annotations: cause } }), undefined)
    assert.equal(recordPatch({ flags: {}, changeCause }, object), undefined)
  })
})
