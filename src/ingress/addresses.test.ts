import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node, Pod } from '#apis/core/v1.ts'
import type { Ingress } from '#apis/networking/v1.ts'

import { addressesFor, isPublished } from './addresses.ts'

const pod = (nodeName: string, rest: object = {}): Pod =>
  ({ metadata: { name: nodeName, ...rest }, spec: { nodeName }, status: { phase: 'Running' } }) as unknown as Pod
const node = (...addresses: readonly (readonly [string, string])[]): Node =>
  ({ status: { addresses: addresses.map(([type, address]) => ({ type, address })) } }) as unknown as Node
const NODES = new Map([
  ['one', node(['InternalIP', '10.0.0.2'], ['Hostname', 'one'])],
  ['two', node(['InternalIP', '10.0.0.1'], ['ExternalIP', '203.0.113.1'])],
])

test('the status of an Ingress has the addresses of the nodes that run the controller', () => {
  const all = [pod('one'), pod('two'), pod('three')]
  assert.deepEqual(addressesFor(all, NODES), [{ ip: '10.0.0.2' }, { ip: '203.0.113.1' }])
  assert.deepEqual(addressesFor([pod('one', { deletionTimestamp: 'now' })], NODES), [])
})

test('the status of an Ingress is not written if it is unchanged', () => {
  const ingress = { status: { loadBalancer: { ingress: [{ ip: '10.0.0.2' }] } } } as unknown as Ingress
  assert.equal(isPublished(ingress, [{ ip: '10.0.0.2' }]), true)
  assert.equal(isPublished(ingress, []), false)
  assert.equal(isPublished({} as Ingress, []), true)
})
