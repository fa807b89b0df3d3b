import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { unionOf } from './managed-fields.ts'

describe('migration of managedFields to server-side apply', () => {
  const theirs = {
    manager: 'old',
    operation: 'Update',
    apiVersion: 'v1',
    fieldsV1: { 'f:a': {}, 'f:b': { 'f:c': {} } },
  } as const
  const ours = { manager: 'new', operation: 'Apply', apiVersion: 'v1', fieldsV1: { 'f:b': { 'f:d': {} } } } as const

  it('moves fields of client-side apply to the applying manager', () => {
    const joined = { ...ours, fieldsV1: { 'f:a': {}, 'f:b': { 'f:c': {}, 'f:d': {} } } }
    assert.deepEqual(unionOf([ours, theirs], new Set(['old']), 'new'), [joined])
  })

  it('renames the managedFields entry if the applying manager has none', () => {
    assert.deepEqual(unionOf([theirs], new Set(['old']), 'new'), [{ ...theirs, manager: 'new', operation: 'Apply' }])
  })

  it('leaves entries of other managers unchanged', () => {
    assert.deepEqual(unionOf([theirs], new Set(['somebody']), 'new'), [theirs])
  })
})
