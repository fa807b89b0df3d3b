import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ServedKind } from '#client/discovery.ts'

import type { ListedChange } from '../history/history-rows.ts'
import { lastChangeIn } from './last-change.ts'

const KIND = { kind: 'ConfigMap', plural: 'configmaps', group: '' } as ServedKind

/** A version that a manager wrote in a second of the minute. */
function version(value: string, manager: string, second: number, metadata: object = {}): ListedChange['object'] {
  const time = `2026-11-18T03:00:0${second}Z`
  const managedFields = [{ manager, operation: 'Update', time, fieldsType: 'FieldsV1', fieldsV1: { 'f:data': {} } }]
  return { metadata: { name: 'a', managedFields, ...metadata }, data: { value } } as ListedChange['object']
}

function change(type: ListedChange['type'], second: number, object: object, oldObject?: object): ListedChange {
  const time = `2026-11-18T03:00:0${second}Z`
  return { type, resourceVersion: String(second), time, object, ...(oldObject && { oldObject }) } as ListedChange
}

function found(items: readonly ListedChange[], by?: string): unknown[] | undefined {
  const state = lastChangeIn(KIND, items, by)
  return (
    state && [
      (state.before as { data?: { value?: string } }).data?.value,
      state.by,
      new Date(state.sinceMs).getSeconds(),
    ]
  )
}

describe('lastChangeIn', () => {
  const [one, two, three] = [version('1', 'ann', 1), version('2', 'bob', 2), version('3', 'carl', 3)]

  it('is the version before the last one, or before the last one of a manager', () => {
    const items = [change('ADDED', 1, one), change('MODIFIED', 2, two), change('MODIFIED', 3, three)]
    assert.deepEqual(found(items), ['2', 'carl', 3])
    assert.deepEqual(found(items, 'bob'), ['1', 'bob', 2])
    assert.equal(found(items, 'dora'), undefined)
  })

  it('takes the version before the first change from the list', () => {
    assert.deepEqual(found([change('MODIFIED', 2, two, one)]), ['1', 'bob', 2])
  })

  it('prefers changes of the spec to those of labels', () => {
    const labelled = version('2', 'dora', 4, { labels: { a: 'b' } })
    const items = [change('MODIFIED', 2, two, one), change('MODIFIED', 4, labelled)]
    assert.deepEqual(found(items), ['1', 'bob', 2])
    assert.deepEqual(found([change('MODIFIED', 4, labelled, two)]), ['2', 'dora', 4])
  })

  it('does not go back beyond the creation of the object', () => {
    assert.equal(found([change('ADDED', 1, one)]), undefined)
    assert.equal(found([change('ADDED', 1, one), change('DELETED', 2, one), change('ADDED', 3, three)]), undefined)
    assert.equal(found([]), undefined)
  })

  it('is the last version of a deleted object', () => {
    const terminating = version('2', 'bob', 2, { deletionTimestamp: '2026-11-18T03:00:03Z' })
    const items = [change('MODIFIED', 3, terminating, two), change('DELETED', 4, terminating)]
    assert.deepEqual(found(items), ['2', undefined, 4])
    assert.equal(lastChangeIn(KIND, items, undefined)?.before.metadata.deletionTimestamp, undefined)
    assert.equal(found(items, 'bob'), undefined)
  })
})
