import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Node, Nodes, type Pod, Pods } from '#apis/core/v1.ts'
import type { ApiClient } from '#client/api-client.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { runAtOnce } from '#lib/time-slicing.ts'
import { kindKey } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import { type Reconsidered, Reconsideration } from './reconsideration.ts'

function node(name: string, cpu: string, spec: object = {}, labels: Record<string, string> = {}): Node {
  const status = { allocatable: { cpu, memory: '8Gi', pods: '10' } }
  return { metadata: { name, uid: name, resourceVersion: '1', labels }, spec, status } as unknown as Node
}

function pod(name: string, cpu: string, spec: object = {}, status: object = {}): Pod {
  const containers = [{ name: 'app', resources: { requests: { cpu } } }]
  return {
    metadata: { namespace: 'ns', name, uid: name, resourceVersion: '1' },
    spec: { containers, ...spec },
    status,
  }
}

function consider(nodes: readonly Node[], pods: readonly Pod[], one: Pod): Reconsidered {
  const objects = new Map<string, readonly KubeObject[]>([
    [kindKey(Nodes), nodes],
    [kindKey(Pods), pods],
  ])
  const client = { clock: createVirtualClock(0) } as unknown as ApiClient
  return runAtOnce(runAtOnce(Reconsideration.of({ objects, client, isEnabled: () => false })).consider(one))
}

const plugins = ({ nodes }: Reconsidered): Record<string, string[]> =>
  Object.fromEntries(nodes.map(({ node: { name }, refusals }) => [name, refusals.map(({ plugin }) => plugin)]))

describe('Reconsideration', () => {
  it('finds every plugin that rejects a node, and the message of the scheduler', () => {
    const tainted = { taints: [{ key: 'gpu', effect: 'NoSchedule' }] }
    const found = consider(
      [node('a', '2'), node('b', '1', tainted), node('c', '4')],
      [pod('used', '1', { nodeName: 'a' }), pod('ended', '4', { nodeName: 'c' }, { phase: 'Succeeded' })],
      pod('new', '2'),
    )
    assert.deepEqual(plugins(found), { a: ['NodeResourcesFit'], b: ['TaintToleration', 'NodeResourcesFit'], c: [] })
    assert.equal(found.message, '0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).')
  })

  it('counts nominated pods', () => {
    const nominated = pod('first', '2', { priority: 10 }, { nominatedNodeName: 'a' })
    const [verdict] = consider([node('a', '2')], [nominated], pod('new', '1')).nodes
    assert.deepEqual(
      verdict?.reservedFor.map(({ key }) => key),
      ['ns/first'],
    )
    assert.deepEqual(consider([node('a', '2')], [nominated], pod('new', '1', { priority: 20 })).nodes[0]?.refusals, [])
  })

  it('rejects a pod before any node, and because of a gate', () => {
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }]
    assert.equal(consider([node('a', '2')], [], pod('new', '1', { volumes })).refused?.plugin, 'VolumeRestrictions')
    const gated = consider([node('a', '2')], [], pod('new', '1', { schedulingGates: [{ name: 'g' }] }))
    assert.deepEqual(gated.gate?.reasons, ['waiting for scheduling gates: [g]'])
  })

  it('covers nodes that a plugin leaves out', () => {
    const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['a'] }] }
    const affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [named] } },
    }
    const found = consider([node('a', '1'), node('b', '4')], [], pod('new', '2', { affinity }))
    assert.deepEqual(plugins(found), { a: ['NodeResourcesFit'], b: ['NodeAffinity'] })
    assert.match(found.message, /^0\/2 nodes are available: 1 Insufficient cpu, 1 node\(s\) didn't satisfy plugin/)
  })
})
