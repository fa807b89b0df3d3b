import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { findGates } from './gate-reach.ts'
import { GATE_GROUPS } from './gate-table.ts'
import { FEATURE_GATES } from './gates.ts'

describe('table of feature gates', () => {
  it('lists each gate once, as locked or with a description of its effect', () => {
    const names = GATE_GROUPS.flatMap(({ working = '', elsewhere = '', locked = '', fixed = {}, refused = {} }) => [
      ...[working, elsewhere, locked].flatMap((text) => text.split(/\s+/).filter(Boolean)),
      ...Object.keys({ ...fixed, ...refused }),
    ])
    assert.deepEqual(names.toSorted(), Object.keys(FEATURE_GATES).toSorted())
    const wrong = GATE_GROUPS.filter(({ spec, locked }) => (spec.locked === true) !== (locked !== undefined))
    assert.deepEqual(wrong, [])
  })

  it('prints a note for a gate without effect, and rejects a feature that is not implemented', () => {
    const gates = new Map([
      ['CBORServingAndStorage', true],
      ['OpenAPIEnums', true],
      ['KubeletSeparateDiskGC', false],
      ['StorageVersionHash', false],
      ['KMSv1', true],
    ])
    assert.deepEqual(findGates(gates), {
      errors: ['--feature-gates=KMSv1=true is not supported: plugins of KMS v1 are not there; use KMS v2'],
      notes: ['--feature-gates=CBORServingAndStorage=true has no effect: CBOR is neither served nor stored'],
    })
    assert.deepEqual(findGates(new Map()), { errors: [], notes: [] })
  })

  it('rejects a gate that does less than upstream if it is enabled by name', () => {
    const on = findGates(new Map([['UnknownVersionInteroperabilityProxy', true]]))
    assert.deepEqual(on.errors, [
      '--feature-gates=UnknownVersionInteroperabilityProxy=true is not supported: requests are not passed on between servers',
    ])
    assert.deepEqual(findGates(new Map([['UnknownVersionInteroperabilityProxy', false]])).errors, [])
    assert.deepEqual(findGates(new Map([['AllBeta', true]])).errors, [])
  })

  it('prints a note also if AllAlpha or AllBeta changes the gate', () => {
    const { notes } = findGates(new Map([['AllAlpha', true]]))
    assert.ok(notes.some((note) => note.startsWith('--feature-gates=ShardedListAndWatch=true has no effect')))
  })
})
