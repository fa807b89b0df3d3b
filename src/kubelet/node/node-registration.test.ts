import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node, NodeStatus } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { createVirtualClock } from '#lib/clock.ts'

import { NodeRegistration } from './node-registration.ts'
import type { Cloud, NodeFacts } from './node-status.ts'

const FACTS: NodeFacts = {
  name: 'n1',
  addresses: ['10.0.0.1'],
  capacity: { cpu: '2', memory: '4Gi', pods: '110' },
  labels: {},
  machineId: 'm',
  bootId: 'b',
  runtime: 'containerd://2.4.2',
  kernel: '6',
  osImage: 'Linux',
  architecture: 'amd64',
  port: 10_250,
  images: [],
}

interface Requests {
  readonly created: Node
  readonly patched: NodeStatus
}

async function requestsOf(cloud: Cloud | undefined): Promise<Requests> {
  let created: Node | undefined
  let patched: NodeStatus | undefined
  const client = {
    clock: createVirtualClock(),
    create: async (_: unknown, node: Node) => (created = node),
    patch: async (_kind: unknown, _ref: unknown, { value }: { value: { status: NodeStatus } }) => {
      patched = value.status
      return { metadata: {} }
    },
  } as unknown as ApiClient
  const facts = (): NodeFacts => ({ ...FACTS, cloud })
  const registration = new NodeRegistration({ client, name: 'n1', facts, recordEvent: () => undefined })
  await registration.register()
  await registration.report(true)
  assert.ok(created !== undefined && patched !== undefined)
  return { created, patched }
}

const HOSTNAME = { type: 'Hostname', address: 'n1' }
const INTERNAL = { type: 'InternalIP', address: '10.0.0.1' }
const PROVIDED = 'alpha.kubernetes.io/provided-node-ip'

test('the node status declares the features of the kubelet, except for ExtendWebSocketsToKubelet', async () => {
  const { patched } = await requestsOf(undefined)
  const { declaredFeatures = [] } = patched
  assert.ok(declaredFeatures.includes('InPlacePodVerticalScalingInitContainers'))
  // A kubelet that declares ExtendWebSocketsToKubelet gets the newest WebSocket protocol, which older runtimes
  // reject.
  assert.ok(!declaredFeatures.includes('ExtendWebSocketsToKubelet'))
  assert.deepEqual(declaredFeatures, declaredFeatures.toSorted())
})

test('the node status contains the addresses of the node', async () => {
  const { created, patched } = await requestsOf(undefined)
  assert.deepEqual(created.status.addresses, [INTERNAL, HOSTNAME])
  assert.equal(created.metadata.annotations?.[PROVIDED], undefined)
  assert.deepEqual(patched.addresses?.slice(0, 2), [INTERNAL, HOSTNAME])
})

test('the node status with a cloud provider contains --node-ip once and keeps the addresses of the cloud', async () => {
  const given = await requestsOf({ given: ['10.0.0.1'] })
  assert.deepEqual(given.created.status.addresses, [INTERNAL, HOSTNAME])
  assert.equal(given.created.metadata.annotations?.[PROVIDED], '10.0.0.1')
  assert.equal(given.patched.addresses, undefined)
  assert.notEqual(given.patched.conditions, undefined)
  const nothing = await requestsOf({ given: [] })
  assert.deepEqual(nothing.created.status.addresses, [HOSTNAME])
  const family = await requestsOf({ given: ['0.0.0.0'] })
  assert.deepEqual(family.created.status.addresses, [INTERNAL, HOSTNAME])
  assert.equal(family.created.metadata.annotations?.[PROVIDED], undefined)
})
