import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Pods } from '#apis/core/v1.ts'

import { citeOf, fieldAt } from './citation.ts'

const object = {
  metadata: { namespace: 'shop', name: 'web', resourceVersion: '7', labels: { 'a.b/c': 'x' } },
  spec: { containers: [{ name: 'app', image: 'app:1', args: ['one', 'two'] }] },
  status: { conditions: [{ type: 'Ready', status: 'False' }], phase: 'Running' },
}

describe('fieldAt()', () => {
  const rows: readonly (readonly [path: string, value: unknown])[] = [
    ['status.phase', 'Running'],
    ['status.conditions[Ready].status', 'False'],
    ['spec.containers[app].image', 'app:1'],
    ['spec.containers[app].args[1]', 'two'],
    ['metadata.labels[a.b/c]', 'x'],
    ['metadata.labels[none]', undefined],
    ['spec.containers[other].image', undefined],
    ['constructor', undefined],
  ]
  for (const [path, value] of rows) it(`reads ${path}`, () => assert.equal(fieldAt(object, path), value))
})

describe('citeOf()', () => {
  it('names the version of the object, and leaves out the value of a missing field', () => {
    assert.deepEqual(citeOf({ kind: Pods, object }, 'status.phase', 'status.reason'), [
      { object: 'pods/shop/web@7', fieldPath: 'status.phase', value: 'Running' },
      { object: 'pods/shop/web@7', fieldPath: 'status.reason' },
    ])
  })
})
