import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { storageVersionMigration } from './storageversionmigration.ts'

const { create, update, cells } = tryRules(storageVersionMigration)
const body = { metadata: { name: 'm' }, spec: { resource: { group: 'apps', resource: 'deployments' } } }

function condition(type: string, status = 'True', reason = 'R'): object {
  return { type, status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
}

test('a StorageVersionMigration names a resource, with the core group by default', async () => {
  assert.deepEqual((await create(body)).errors, [])
  assert.deepEqual((await create(changed(body, 'spec.resource.group', ''))).errors, [])
  const table: readonly (readonly [string, unknown, RegExp])[] = [
    ['spec.resource.resource', '', /^spec\.resource\.resource: Required value: resource is required to be set$/],
    ['spec.resource.resource', 'A.b', /^spec\.resource\.resource: Invalid value: "A\.b": a DNS-1035 label must/],
    ['spec.resource.group', 'A!', /^spec\.resource\.group: Invalid value: "A!": a lowercase RFC 1123 subdomain must/],
    ['metadata.name', 'A', /^metadata\.name: Invalid value: "A": a lowercase RFC 1123 subdomain must/],
    ['spec', { resource: {} }, /^spec\.resource\.resource: Required value/],
  ]
  for (const [path, value, error] of table) {
    const { errors } = await create(changed(body, path, value))
    assert.equal(errors.length, 1, path)
    assert.match(errors[0] ?? '', error)
  }
  assert.deepEqual((await update(changed(body, 'spec.resource.resource', 'pods'), body)).errors, [
    'spec: Invalid value: {"resource":{"group":"apps","resource":"pods"}}: field is immutable',
  ])
})

test('a StorageVersionMigration validates its status, and keeps terminal conditions', async () => {
  const done = { ...body, status: { resourceVersion: '5', conditions: [condition('Succeeded')] } }
  const at = 'status.conditions: Invalid value: '
  const failed = [condition('Failed')]
  const table: readonly (readonly [object, object, readonly string[]])[] = [
    [{ resourceVersion: '5', conditions: [condition('Running')] }, body, []],
    [
      { resourceVersion: '012' },
      body,
      ['status.resourceVersion: Invalid value: "012": resource version is not well formed: 012'],
    ],
    [{ conditions: [condition('Running', 'True', '')] }, body, ['status.conditions[0].reason: Required value']],
    [
      { ...done.status, resourceVersion: '6' },
      done,
      ['status.resourceVersion: Invalid value: "6": field is immutable'],
    ],
    [
      { resourceVersion: '5', conditions: failed },
      done,
      [`${at}${JSON.stringify(ordered(failed))}: Success condition cannot be set to false once it is true`],
    ],
    [{ resourceVersion: '5' }, done, [`${at}null: Success condition cannot be set to false once it is true`]],
    [
      { conditions: [condition('Succeeded'), condition('Failed')] },
      body,
      [
        `${at}${JSON.stringify(ordered([condition('Succeeded'), condition('Failed')]))}: Both success and failed conditions cannot be true at the same time`,
      ],
    ],
  ]
  for (const [status, old, errors] of table) {
    assert.deepEqual((await update({ ...body, status }, old, 'status')).errors, errors)
  }
})

/** In Go's field order. */
function ordered(conditions: readonly object[]): object[] {
  return conditions.map((one) => {
    const { type, status, lastTransitionTime, reason, message } = one as Record<string, string>
    return { type, status, lastTransitionTime, reason, message }
  })
}

test('a StorageVersionMigration prints the resource and its progress', () => {
  assert.deepEqual(cells(body), ['m', 'deployments.apps', 'Unknown'])
  const running = { conditions: [condition('Running'), condition('Other')] }
  assert.deepEqual(cells({ ...changed(body, 'spec.resource', { resource: 'pods' }), status: running }), [
    'm',
    'pods',
    'Running',
  ])
})
