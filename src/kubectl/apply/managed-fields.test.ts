import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { unionOf } from './managed-fields.ts'

describe('fields of client-side apply', () => {
  const theirs = {
    manager: 'old',
    operation: 'Update',
    apiVersion: 'v1',
    fieldsV1: { 'f:a': {}, 'f:b': { 'f:c': {} } },
  } as const
  const ours = { manager: 'new', operation: 'Apply', apiVersion: 'v1', fieldsV1: { 'f:b': { 'f:d': {} } } } as const

  it('become those of the manager who applies', () => {
    const joined = { ...ours, fieldsV1: { 'f:a': {}, 'f:b': { 'f:c': {}, 'f:d': {} } } }
    assert.deepEqual(unionOf([ours, theirs], new Set(['old']), 'new'), [joined])
  })

  it('change hands when there is none yet', () => {
    assert.deepEqual(unionOf([theirs], new Set(['old']), 'new'), [{ ...theirs, manager: 'new', operation: 'Apply' }])
  })

  it('stay with whoever is not named', () => {
    assert.deepEqual(unionOf([theirs], new Set(['somebody']), 'new'), [theirs])
  })
})
