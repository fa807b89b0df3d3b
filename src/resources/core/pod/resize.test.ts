import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Container, Pod, ResourceRequirements } from '#apis/core/v1.ts'

import { ephemeralContainers } from './ephemeral-containers.ts'
import { contextWith, podOf, type PodPatch, textsOf, web } from './pod.suite.ts'
import { resize } from './resize.ts'

const context = contextWith()

function written(part: typeof resize, old: Pod, next: Pod): { object: Pod; errors: string[] } {
  part.prepareUpdate?.(next, old, context)
  return { object: next, errors: textsOf(part.validateUpdate?.(next, old, context) ?? []) }
}

const resized = (old: PodPatch, next: PodPatch): { object: Pod; errors: string[] } =>
  written(resize, podOf(old), podOf(next))

const sized = (resources: ResourceRequirements, more: Partial<Container> = {}): PodPatch => ({
  spec: { containers: [web({ resources, ...more })] },
})

describe('resize subresource of a pod', () => {
  it('changes only CPU and memory, and increases the generation', () => {
    const next = podOf({ ...sized({ requests: { cpu: '2' } }, { command: ['x'] }), metadata: { labels: { a: 'b' } } })
    const { object, errors } = written(resize, podOf(sized({ requests: { cpu: '1' } })), next)
    assert.deepEqual(errors, [])
    assert.deepEqual(object.spec.containers[0]?.resources, { requests: { cpu: '2' } })
    assert.equal(object.spec.containers[0]?.command, undefined)
    assert.equal(object.metadata.labels, undefined)
    assert.equal(object.metadata.generation, 2)
  })

  const gpu = { 'example.com/gpu': '1' }
  const refused: readonly [title: string, PodPatch, PodPatch, string[]][] = [
    [
      'a change of the QoS class',
      sized({ requests: { cpu: '1' } }),
      sized({ requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '1', memory: '1Gi' } }),
      ['spec: Invalid value: "": Pod QOS Class may not change as a result of resizing'],
    ],
    [
      'removal of requests',
      sized({ requests: { cpu: '1', memory: '1Gi' } }),
      sized({ requests: { cpu: '1' } }),
      ['spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed'],
    ],
    [
      'resources other than CPU and memory',
      sized({ requests: { cpu: '1', ...gpu }, limits: gpu }),
      sized({ requests: { cpu: '1', 'example.com/gpu': '2' }, limits: { 'example.com/gpu': '2' } }),
      ['spec: Forbidden: only cpu and memory resources are mutable'],
    ],
    [
      'added or removed containers',
      sized({}),
      { spec: { containers: [web(), web({ name: 'b' })] } },
      ['spec.containers: Forbidden: containers may not be added or removed on resize'],
    ],
    [
      'renamed containers',
      sized({}),
      { spec: { containers: [web({ name: 'b' })] } },
      ['spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize'],
    ],
    [
      'removal of pod-level resources',
      { spec: { resources: { requests: { cpu: '1' } } } },
      {},
      [
        'spec: Invalid value: "": Pod QOS Class may not change as a result of resizing',
        'spec.resources: Forbidden: pod-level resources cannot be removed',
      ],
    ],
    [
      'Windows pods',
      { spec: { os: { name: 'windows' } } },
      { spec: { os: { name: 'windows' } } },
      ['[]: Forbidden: windows pods cannot be resized'],
    ],
    [
      'mirror pods',
      { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } },
      {},
      ['[]: Forbidden: static pods cannot be resized'],
    ],
  ]
  for (const [title, old, next, errors] of refused) {
    it(`rejects ${title}`, () => assert.deepEqual(resized(old, next).errors, errors))
  }

  it('fails if the node does not declare support for the change', () => {
    const state = { running: { startedAt: null } }
    const status = {
      containerStatuses: [{ name: 'web', state, lastState: {}, ready: true, restartCount: 0, image: '', imageID: '' }],
    }
    assert.deepEqual(
      resized({ ...sized({ requests: { cpu: '1' } }), status }, sized({ requests: { cpu: '2' } })).errors,
      ['spec: Forbidden: Pod running on node without support for resize'],
    )
  })

  it('may add pod-level resources', () => {
    const spec = { containers: [web({ resources: { requests: { cpu: '1' } } })] }
    const { object, errors } = resized({ spec }, { spec: { ...spec, resources: { requests: { cpu: '2' } } } })
    assert.deepEqual(errors, [])
    assert.deepEqual(object.spec.resources, { requests: { cpu: '2' } })
  })
})

describe('ephemeralcontainers subresource of a pod', () => {
  const debug = web({ name: 'debug', image: 'busybox:1' })
  const added = (old: PodPatch, next: PodPatch): { object: Pod; errors: string[] } =>
    written(ephemeralContainers, podOf(old), podOf(next))

  it('adds ephemeral containers, and rejects every other change', () => {
    const { object, errors } = added({}, { spec: { hostname: 'x', ephemeralContainers: [debug] } })
    assert.deepEqual(errors, [])
    assert.equal(object.spec.hostname, undefined)
    assert.equal(object.spec.ephemeralContainers?.length, 1)
    assert.equal(object.metadata.generation, 2)
  })

  it('rejects changes of existing ephemeral containers', () => {
    const old = { spec: { ephemeralContainers: [debug] } }
    assert.deepEqual(added(old, {}).errors, [
      'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n',
    ])
    const changed = { ...debug, image: 'busybox:2' }
    assert.deepEqual(added(old, { spec: { ephemeralContainers: [changed] } }).errors, [
      'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed\n  spec.ephemeralContainers.image: "busybox:1" -> "busybox:2"',
    ])
  })

  it('is forbidden for mirror pods', () => {
    const mirror = { metadata: { annotations: { 'kubernetes.io/config.mirror': 'x' } } }
    assert.deepEqual(added(mirror, mirror).errors, ['[]: Forbidden: static pods do not support ephemeral containers'])
  })
})
