import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject } from '#meta/object.ts'

import type { ReadChange } from '../reader.ts'
import { lastChange, lastDeletion, transitionsOf } from './changes.ts'

function state(uid: string, deletionTimestamp?: string): KubeObject {
  return { metadata: { name: 'p', uid, ...(deletionTimestamp !== undefined && { deletionTimestamp }) } }
}

function change(type: ReadChange['type'], version: number, object: KubeObject, oldObject?: KubeObject): ReadChange {
  return { type, resourceVersion: String(version), object, ...(oldObject !== undefined && { oldObject }) }
}

const LIFE = [
  change('ADDED', 1, state('a')),
  change('MODIFIED', 2, state('a', 'soon')),
  change('MODIFIED', 3, state('a', 'soon')),
  change('DELETED', 4, state('a', 'soon')),
  change('ADDED', 5, state('b')),
]

describe('lastDeletion()', () => {
  it('finds the change that began the deletion', () => {
    const found = lastDeletion(LIFE)
    assert.equal(found?.decision?.resourceVersion, '2')
    assert.equal(found.end.resourceVersion, '4')
  })

  it('takes the removal itself, for an object without a grace period', () => {
    const found = lastDeletion([change('ADDED', 1, state('a')), change('DELETED', 2, state('a'))])
    assert.equal(found?.decision?.resourceVersion, '2')
  })

  it('does not know a beginning that is older than the history', () => {
    assert.equal(lastDeletion(LIFE.slice(2))?.decision, undefined)
    const marked = change('MODIFIED', 3, state('a', 'soon'), state('a', 'soon'))
    assert.equal(lastDeletion([marked, ...LIFE.slice(3)])?.decision, undefined)
  })

  it('finds none in the life of an object that exists', () => {
    assert.equal(lastDeletion(LIFE.slice(4)), undefined)
  })
})

describe('lastChange()', () => {
  it('finds the last change until a revision, with the state before it', () => {
    const found = lastChange(LIFE, '3', ({ before }) => before?.metadata.uid === 'a')
    assert.equal(found?.resourceVersion, '3')
    assert.equal(
      lastChange(LIFE, '1', ({ before }) => before !== undefined),
      undefined,
    )
  })
})

describe('transitionsOf()', () => {
  it('does not take another object of the same name for the state before', () => {
    assert.equal(transitionsOf(LIFE).at(-1)?.before, undefined)
  })
})
