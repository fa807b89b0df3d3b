import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node, Service } from '#apis/core/v1.ts'
import type { EndpointSlice } from '#apis/discovery/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { changesBalance, isBalanced } from './balanced-nodes.ts'
import { statusFor } from './node-balancer.ts'
import type { ClusterView } from './provider.ts'
import { stepFor } from './service-loop.ts'

const nodeOf = (name: string, more: { labels?: object; taints?: object[]; addresses?: readonly string[] } = {}): Node =>
  ({
    metadata: { name, labels: more.labels ?? {} },
    spec: { taints: more.taints ?? [] },
    status: {
      addresses: (more.addresses ?? []).map((text) => ({ type: text.split(' ')[0], address: text.split(' ')[1] })),
    },
  }) as unknown as Node

const serviceOf = (spec: object, metadata: object = {}): Service =>
  ({
    metadata: { name: 'web', namespace: 'shop', ...metadata },
    spec: { type: 'LoadBalancer', ...spec },
  }) as unknown as Service

const viewOf = (slices: readonly EndpointSlice[]): ClusterView => ({
  get: () => undefined,
  list: <T extends KubeObject>() => slices as unknown as Iterable<T>,
})

test('load balancers exclude nodes that are terminating or have the exclusion label', () => {
  const label = 'node.kubernetes.io/exclude-from-external-load-balancers'
  assert.equal(isBalanced(nodeOf('a')), true)
  for (const [value, isIn] of [
    ['', false],
    ['true', false],
    ['maybe', false],
    ['false', true],
  ] as const)
    assert.equal(isBalanced(nodeOf('a', { labels: { [label]: value } })), isIn, value)
  assert.equal(isBalanced(nodeOf('a', { taints: [{ key: 'ToBeDeletedByClusterAutoscaler' }] })), false)
  assert.equal(changesBalance(nodeOf('a'), nodeOf('a', { labels: { x: 'y' } })), false)
  assert.equal(changesBalance(nodeOf('a'), nodeOf('a', { addresses: ['InternalIP 10.0.0.1'] })), true)
})

test('a load-balanced Service has node addresses of its IP families, external ones first', () => {
  const nodes = [
    nodeOf('b', { addresses: ['InternalIP 10.0.0.2', 'InternalIP fd00::2', 'Hostname b'] }),
    nodeOf('a', { addresses: ['InternalIP 10.0.0.1', 'ExternalIP 192.0.2.1'] }),
  ]
  const ips = (spec: object, slices: readonly EndpointSlice[] = []): unknown =>
    statusFor(serviceOf(spec), nodes, viewOf(slices)).ingress?.map(({ ip, ipMode }) => `${ip} ${ipMode}`)
  assert.deepEqual(ips({ ipFamilies: ['IPv4'] }), ['10.0.0.2 VIP', '192.0.2.1 VIP'])
  assert.deepEqual(ips({ ipFamilies: ['IPv6', 'IPv4'] }), ['10.0.0.2 VIP', '192.0.2.1 VIP', 'fd00::2 VIP'])
  const labels = { 'kubernetes.io/service-name': 'web' }
  const slice = (nodeName: string, ready: boolean): EndpointSlice =>
    ({
      metadata: { namespace: 'shop', labels },
      endpoints: [{ nodeName, conditions: { ready } }],
    }) as unknown as EndpointSlice
  const local = { ipFamilies: ['IPv4'], externalTrafficPolicy: 'Local' }
  assert.deepEqual(ips(local, [slice('b', true), slice('a', false)]), ['10.0.0.2 VIP'])
  assert.equal(ips(local), undefined)
})

test('stepFor() returns "ensure", "clean up" or "nothing" for a Service', () => {
  const finalizers = ['service.kubernetes.io/load-balancer-cleanup']
  assert.equal(stepFor(serviceOf({})), 'ensure')
  assert.equal(stepFor(serviceOf({ loadBalancerClass: 'example.com/other' })), 'nothing')
  assert.equal(stepFor(serviceOf({ type: 'ClusterIP' })), 'nothing')
  assert.equal(stepFor(serviceOf({ type: 'ClusterIP' }, { finalizers })), 'clean up')
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  assert.equal(stepFor(serviceOf({}, { finalizers, deletionTimestamp })), 'clean up')
  assert.equal(stepFor(serviceOf({}, { finalizers: ['other'], deletionTimestamp })), 'nothing')
})
