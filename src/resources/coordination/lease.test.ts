import assert from 'node:assert/strict'
import { test } from 'node:test'

import { changed, judge } from '../rules.fixture.ts'
import { lease } from './lease.ts'

const body = {
  metadata: { name: 'l', namespace: 'ns' },
  spec: { holderIdentity: 'me', leaseDurationSeconds: 15, leaseTransitions: 1 },
}
const coordinated = {
  ...body,
  spec: { ...body.spec, strategy: 'OldestEmulationVersion', preferredHolder: 'you' },
}

test('lasts for a while', async () => {
  const { create } = judge(lease)
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

test('fields of coordinated leader election need its gate, or to have been there', async () => {
  const { create, update } = judge(lease)
  assert.deepEqual((await create(coordinated)).object.spec, body.spec)
  assert.deepEqual((await update(coordinated, body)).object.spec, body.spec)
  assert.deepEqual((await update(coordinated, coordinated)).object.spec, coordinated.spec)
})

test('a strategy is one of ours or a qualified name', async () => {
  const { create } = judge(lease, { off: [] })
  assert.deepEqual((await create(coordinated)).errors, [])
  assert.deepEqual((await create(changed(coordinated, 'spec.strategy', 'example.com/mine'))).errors, [])
  assert.deepEqual((await create(changed(coordinated, 'spec.strategy', 'mine'))).errors, [
    'spec.strategy.strategy: Unsupported value: "mine": supported values: "OldestEmulationVersion"',
  ])
  assert.deepEqual((await create(changed(coordinated, 'spec.strategy', undefined))).errors, [
    'spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined',
  ])
})

test('shows its holder', () => {
  assert.deepEqual(judge(lease).cells(body), ['l', 'me', '<unknown>'])
  assert.deepEqual([lease.putCreates, lease.putNeedsVersion], [true, true])
})
