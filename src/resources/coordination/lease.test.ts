import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, tryRules } from '../rules.fixture.ts'
import { lease } from './lease.ts'

const body = {
  metadata: { name: 'l', namespace: 'ns' },
  spec: { holderIdentity: 'me', leaseDurationSeconds: 15, leaseTransitions: 1 },
}
const coordinated = {
  ...body,
  spec: { ...body.spec, strategy: 'OldestEmulationVersion', preferredHolder: 'you' },
}

test('a Lease requires a positive duration', async () => {
  const { create } = tryRules(lease)
  assert.deepEqual((await create(body)).errors, [])
  const table: readonly (readonly [string, unknown, readonly string[]])[] = [
    ['spec.leaseDurationSeconds', 0, ['spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0']],
    ['spec.leaseDurationSeconds', -5, ['spec.leaseDurationSeconds: Invalid value: -5: must be greater than 0']],
    ['spec.leaseTransitions', -1, ['spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0']],
    ['metadata.namespace', undefined, ['metadata.namespace: Required value']],
    ['metadata.name', undefined, ['metadata.name: Required value: name or generateName is required']],
  ]
  for (const [path, value, errors] of table) {
    assert.deepEqual((await create(changed(body, path, value))).errors, errors, path)
  }
})

test('a Lease needs a gate, or an old value, for fields of coordinated leader election', async () => {
  const { create, update } = tryRules(lease)
  assert.deepEqual((await create(coordinated)).object.spec, body.spec)
  assert.deepEqual((await update(coordinated, body)).object.spec, body.spec)
  assert.deepEqual((await update(coordinated, coordinated)).object.spec, coordinated.spec)
})

test('a Lease requires a known strategy or a qualified name', async () => {
  const { create } = tryRules(lease, { off: [] })
  assert.deepEqual((await create(coordinated)).errors, [])
  assert.deepEqual((await create(changed(coordinated, 'spec.strategy', 'example.com/mine'))).errors, [])
  assert.deepEqual((await create(changed(coordinated, 'spec.strategy', 'mine'))).errors, [
    'spec.strategy.strategy: Unsupported value: "mine": supported values: "OldestEmulationVersion"',
  ])
  assert.deepEqual((await create(changed(coordinated, 'spec.strategy', undefined))).errors, [
    'spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined',
  ])
})

test('a Lease prints its holder', () => {
  assert.deepEqual(tryRules(lease).cells(body), ['l', 'me', '<unknown>'])
  assert.deepEqual([lease.putCreates, lease.putNeedsVersion], [true, true])
})
