import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Node } from '#apis/core/v1.ts'

import { kubeletUrl } from './metrics-server.ts'

const FLAGS = {
  'kubelet-preferred-address-types': ['InternalIP', 'Hostname'],
  'kubelet-use-node-status-port': false,
  'kubelet-port': 10_250,
}
const node = (addresses: readonly (readonly [string, string])[], port = 0): Node =>
  ({
    status: {
      addresses: addresses.map(([type, address]) => ({ type, address })),
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    },
  }) as unknown as Node

test('metrics-server uses the first preferred address type of the node', () => {
  const both = node([
    ['Hostname', 'one'],
    ['InternalIP', '10.0.0.1'],
  ])
  assert.equal(kubeletUrl(both, FLAGS), 'https://10.0.0.1:10250')
  assert.equal(kubeletUrl(node([['Hostname', 'one']]), FLAGS), 'https://one:10250')
  assert.equal(kubeletUrl(node([['InternalIP', 'fd00::1']]), FLAGS), 'https://[fd00::1]:10250')
  assert.equal(kubeletUrl(node([['ExternalIP', '203.0.113.1']]), FLAGS), undefined)
  assert.equal(kubeletUrl(undefined, FLAGS), undefined)
})

test('metrics-server uses the port in the node status if configured', () => {
  const own = node([['InternalIP', '10.0.0.1']], 10_260)
  assert.equal(kubeletUrl(own, FLAGS), 'https://10.0.0.1:10250')
  assert.equal(kubeletUrl(own, { ...FLAGS, 'kubelet-use-node-status-port': true }), 'https://10.0.0.1:10260')
})
