import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node, Pod } from '#apis/core/v1.ts'
import type { Ingress } from '#apis/networking/v1.ts'

import { isSaid, reachedAt } from './addresses.ts'

const pod = (nodeName: string, rest: object = {}): Pod =>
  ({ metadata: { name: nodeName, ...rest }, spec: { nodeName }, status: { phase: 'Running' } }) as unknown as Pod
const node = (...addresses: readonly (readonly [string, string])[]): Node =>
  ({ status: { addresses: addresses.map(([type, address]) => ({ type, address })) } }) as unknown as Node
const NODES = new Map([
  ['one', node(['InternalIP', '10.0.0.2'], ['Hostname', 'one'])],
  ['two', node(['InternalIP', '10.0.0.1'], ['ExternalIP', '203.0.113.1'])],
])

test('an Ingress is reached at the nodes where the controller runs', () => {
  const all = [pod('one'), pod('two'), pod('three')]
  assert.deepEqual(reachedAt(all, NODES), [{ ip: '10.0.0.2' }, { ip: '203.0.113.1' }])
  assert.deepEqual(reachedAt([pod('one', { deletionTimestamp: 'now' })], NODES), [])
})

test('what is said already is not said again', () => {
  const ingress = { status: { loadBalancer: { ingress: [{ ip: '10.0.0.2' }] } } } as unknown as Ingress
  assert.equal(isSaid(ingress, [{ ip: '10.0.0.2' }]), true)
  assert.equal(isSaid(ingress, []), false)
  assert.equal(isSaid({} as Ingress, []), true)
})
