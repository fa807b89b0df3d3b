import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ELSEWHERE, findGates, FIXED, REFUSED, WORKING } from './gate-reach.ts'
import { FEATURE_GATES } from './gates.ts'

describe('feature gates', () => {
  it('that can be changed are each in one table, and no others are', () => {
    const free = Object.entries(FEATURE_GATES).filter(([, { locked }]) => locked !== true)
    const listed = [...WORKING, ...ELSEWHERE, ...Object.keys(FIXED), ...Object.keys(REFUSED)]
    assert.deepEqual(listed.toSorted(), free.map(([name]) => name).toSorted())
  })

  it('are told of when they change nothing, and refused when that would be a loss', () => {
    const asked = new Map([
      ['CBORServingAndStorage', true],
      ['OpenAPIEnums', true],
      ['KubeletSeparateDiskGC', false],
      ['StorageVersionHash', false],
      ['KMSv1', true],
    ])
    assert.deepEqual(findGates(asked), {
      errors: ['--feature-gates=KMSv1=true is not supported: plugins of KMS v1 are not there; use KMS v2'],
      notes: ['--feature-gates=CBORServingAndStorage=true has no effect: CBOR is neither served nor stored'],
    })
    assert.deepEqual(findGates(new Map()), { errors: [], notes: [] })
  })

  it('that are on and do less than upstream are refused when they are named', () => {
    const on = findGates(new Map([['UnknownVersionInteroperabilityProxy', true]]))
    assert.deepEqual(on.errors, [
      '--feature-gates=UnknownVersionInteroperabilityProxy=true is not supported: requests are not passed on between servers',
    ])
    assert.deepEqual(findGates(new Map([['UnknownVersionInteroperabilityProxy', false]])).errors, [])
    assert.deepEqual(findGates(new Map([['AllBeta', true]])).errors, [])
  })

  it('that all change at once are told of too', () => {
    const { notes } = findGates(new Map([['AllAlpha', true]]))
    assert.ok(notes.some((note) => note.startsWith('--feature-gates=ShardedListAndWatch=true has no effect')))
  })
})
