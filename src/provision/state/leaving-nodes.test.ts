import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ClusterFile } from '../cluster.ts'
import { MINIMAL } from '../file/cluster-file.fixture.ts'
import { readClusterFile } from '../file/cluster-file.ts'
import { nodesThatLeave } from './leaving-nodes.ts'

const cluster = readClusterFile(MINIMAL).cluster as ClusterFile
const [node] = cluster.nodes
assert.ok(node)

function stateOf(...names: string[]): { rkeConfig: ClusterFile; certificatesBundle: {}; encryptionConfig: string } {
  const nodes = names.map(
    (name) => ({ ...node, hostname_override: name, internal_address: `10.0.0.${name}` }) as typeof node,
  )
  return {
    rkeConfig: { ...cluster, nodes: nodes as ClusterFile['nodes'] },
    certificatesBundle: {},
    encryptionConfig: '',
  }
}

test('nodesThatLeave() returns the nodes that only earlier cluster files have, even if they were never built', () => {
  const { rkeConfig: now } = stateOf('1', '2')
  const left = nodesThatLeave(now, {
    currentState: stateOf('1', '3'),
    desiredState: stateOf('1', '4'),
    leaving: stateOf('5').rkeConfig.nodes,
  })
  assert.deepEqual(
    left.map(({ hostname_override: name }) => name),
    ['5', '3', '4'],
  )
  assert.deepEqual(nodesThatLeave(now, {}), [])
})

test('nodesThatLeave() includes a machine whose node name another machine has taken', () => {
  const { rkeConfig: now } = stateOf('1')
  const [moved] = now.nodes
  assert.ok(moved)
  const replaced = { nodes: [{ ...moved, internal_address: '10.0.0.99' }] }
  assert.deepEqual(
    nodesThatLeave(replaced, { currentState: stateOf('1') }).map((each) => each.internal_address),
    ['10.0.0.1'],
  )
})
