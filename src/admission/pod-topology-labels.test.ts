import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Binding, Pod } from '#apis/core/v1.ts'
import { admit } from '#kits/admission/sample-write.ts'

import { createPodTopologyLabels } from './pod-topology-labels.ts'

const isEnabled = (): boolean => true

function pod(spec: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('PodTopologyLabels', () => {
  const plugin = createPodTopologyLabels({ isEnabled })
  const labels = { 'topology.kubernetes.io/zone': 'z', 'topology.kubernetes.io/region': 'r', other: 'o' }
  const world = { nodes: [{ metadata: { name: 'n', labels } }] }
  const copied = { 'topology.kubernetes.io/zone': 'z', 'topology.kubernetes.io/region': 'r' }

  it('copies the topology labels of the node to a Binding, and to a pod that is created with a node', async () => {
    const object = { metadata: { name: 'p', labels: { a: 'b' } }, target: { kind: 'Node', name: 'n' } }
    const binding = (await admit(plugin, { resource: 'pods', subresource: 'binding', object, world })) as Binding
    assert.deepEqual(binding.metadata.labels, { a: 'b', ...copied })
    const bound = (await admit(plugin, { resource: 'pods', object: pod({ nodeName: 'n' }), world })) as Pod
    assert.deepEqual(bound.metadata.labels, copied)
  })

  it('adds no labels if the node does not exist', async () => {
    const object = pod({ nodeName: 'x' })
    assert.deepEqual(await admit(plugin, { resource: 'pods', object, world }), object)
  })
})
