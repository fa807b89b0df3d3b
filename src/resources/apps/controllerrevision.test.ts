import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { controllerRevision } from './controllerrevision.ts'

const { create, update, cells } = tryRules(controllerRevision)

const body = { metadata: { name: 'web-1', namespace: 'ns' }, data: { spec: {} }, revision: 1 }

test('a ControllerRevision requires an object as data', async () => {
  assert.deepEqual((await create(body)).errors, [])
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['data', undefined, ['data: Required value: data is mandatory']],
    ['data', null, ['data: Required value: data is mandatory']],
    ['data', [1], ['data: Required value: data must be a valid JSON object']],
    ['data', 'text', ['data: Required value: data must be a valid JSON object']],
    ['revision', -1, ['revision: Invalid value: -1: must be greater than or equal to 0']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, String(value))
  }
})

test('a ControllerRevision keeps data unchanged, including empty values', async () => {
  assert.deepEqual((await update(changed(body, 'revision', 2), body)).errors, [])
  assert.deepEqual((await update(changed(body, 'data', { spec: null }), body)).errors, [
    'data: Invalid value: {"spec":null}: field is immutable',
  ])
})

test('a ControllerRevision prints its controller', () => {
  assert.deepEqual(cells(body), ['web-1', '<none>', 1, '<unknown>'])
  const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'u', controller: true }
  assert.equal(cells(changed(body, 'metadata.ownerReferences', [owner]))[1], 'statefulset.apps/web')
})
