import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, judge } from '../rules.fixture.ts'
import { storageVersionMigration } from './storageversionmigration.ts'

const { create, update, cells } = judge(storageVersionMigration)
const body = { metadata: { name: 'm' }, spec: { resource: { group: 'apps', resource: 'deployments' } } }

function condition(type: string, status = 'True', reason = 'R'): object {
  return { type, status, reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
}

test('names a resource, of the core group when it names no other', async () => {
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

test('what was reached stays so', async () => {
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

/** As Go orders the fields. */
function ordered(conditions: readonly object[]): object[] {
  return conditions.map((one) => {
    const { type, status, lastTransitionTime, reason, message } = one as Record<string, string>
    return { type, status, lastTransitionTime, reason, message }
  })
}

test('shows what is migrated and how far it is', () => {
  assert.deepEqual(cells(body), ['m', 'deployments.apps', 'Unknown'])
  const running = { conditions: [condition('Running'), condition('Other')] }
  assert.deepEqual(cells({ ...changed(body, 'spec.resource', { resource: 'pods' }), status: running }), [
    'm',
    'pods',
    'Running',
  ])
})
