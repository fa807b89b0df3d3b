import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject } from '#meta/object.ts'

import { historyRows, type ListedChange } from './history-rows.ts'

function deployment(replicas: number, manager: string, status: object = {}): KubeObject {
  const managedFields = [{ manager, operation: 'Update', time: `2026-01-01T00:00:0${replicas}Z` }]
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', managedFields },
    spec: { replicas },
    status,
  } as never
}

function change(type: ListedChange['type'], version: number, object: KubeObject, oldObject?: KubeObject): ListedChange {
  const point = { resourceVersion: String(version), time: `2026-01-01T00:00:0${version}Z` }
  return { type, ...point, object, ...(oldObject !== undefined && { oldObject }) }
}

function texts(changes: readonly ListedChange[], fields: readonly string[] = []): string[] {
  return historyRows(changes, fields).map((row) => `${row.version} ${row.who}: ${row.change}`)
}

const ALL = [
  change('ADDED', 1, deployment(1, 'kubectl')),
  change('MODIFIED', 2, deployment(2, 'hpa')),
  change('MODIFIED', 3, deployment(2, 'hpa', { replicas: 2 })),
  change('DELETED', 4, deployment(2, 'hpa')),
]

describe('historyRows()', () => {
  it('compares each version with the one before', () => {
    assert.deepEqual(texts(ALL), [
      '1 kubectl: created',
      '2 hpa: spec.replicas: 1 → 2',
      '3 <unknown>: status.replicas: + 2',
      '4 <unknown>: deleted',
    ])
  })

  it('names the user and the causes if the server knows them', () => {
    const by = { user: 'ann', because: ['pods/default/a@7', 'nodes/one@8'] }
    const [row] = historyRows([{ ...change('DELETED', 4, deployment(2, 'hpa')), by }], [])
    assert.deepEqual([row?.who, row?.because], ['ann', 'pods/default/a@7, nodes/one@8'])
  })

  it('starts with the version that the server sends along', () => {
    const first = change('MODIFIED', 2, deployment(2, 'hpa'), deployment(1, 'kubectl'))
    assert.deepEqual(texts([first]), ['2 hpa: spec.replicas: 1 → 2'])
  })

  it('shows only the changes of some fields', () => {
    assert.deepEqual(texts(ALL, ['spec']), [
      '1 kubectl: created',
      '2 hpa: spec.replicas: 1 → 2',
      '4 <unknown>: deleted',
    ])
    assert.deepEqual(texts(ALL, ['sp']), ['1 kubectl: created', '4 <unknown>: deleted'])
  })

  it('shows fields of the spec before those of the status, and counts the others', () => {
    const before = deployment(1, 'a', { one: 1, two: 1, three: 1 })
    const after = deployment(2, 'a', { one: 2, two: 2, three: 2 })
    assert.deepEqual(texts([change('MODIFIED', 2, after, before)]), [
      '2 a: spec.replicas: 1 → 2; status.one: 1 → 2; status.two: 1 → 2; and 1 more',
    ])
  })
})
