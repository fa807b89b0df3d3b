import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { refusalStatus } from '#kits/admission/sample-write.ts'

import { createPodResizeValidator } from './pod-resize-validator.ts'

const isEnabled = (): boolean => true

function pod(spec: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('PodResizeValidator', () => {
  const plugin = createPodResizeValidator({ isEnabled })
  const status = { allocatable: { cpu: '2', memory: '1Gi' } }
  const world = {
    nodes: [
      { metadata: { name: 'n', labels: { 'kubernetes.io/os': 'linux' } }, status },
      { metadata: { name: 'w', labels: { 'kubernetes.io/os': 'windows' } }, status },
    ],
  }
  const sized = (nodeName: string, requests: object): object =>
    pod({ nodeName, containers: [{ name: 'c', resources: { requests } }] })
  const statusOf = (nodeName: string, requests: object): ReturnType<typeof refusalStatus> =>
    refusalStatus(plugin, {
      resource: 'pods',
      subresource: 'resize',
      object: sized(nodeName, requests),
      oldObject: sized(nodeName, { cpu: '1' }),
      world,
    })

  it('rejects a resize of a pod beyond the allocatable resources of its node', async () => {
    assert.equal(await statusOf('n', { cpu: '2' }), undefined)
    assert.equal(await statusOf('n', { cpu: '1' }), undefined)
    const much = await statusOf('n', { cpu: '2500m', memory: '2Gi' })
    assert.equal(
      much?.message,
      'pods "p" is forbidden: node didn\'t have enough allocatable resources: cpu, requested: 2500, allocatable: 2000; memory, requested: 2147483648, allocatable: 1073741824',
    )
    assert.deepEqual(much?.details?.causes, [{ reason: 'NodeCapacity' }])
    const windows = await statusOf('w', { cpu: '2' })
    assert.equal(
      windows?.message,
      'pods "p" is forbidden: pod resize is only supported on linux nodes, node "w" is "windows"',
    )
    assert.deepEqual(windows?.details?.causes, [{ reason: 'UnsupportedPlatform' }])
  })
})
