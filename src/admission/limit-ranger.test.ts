import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { admit, refusal, type World } from '#kits/admission/sample-write.ts'

import { createLimitRanger } from './limit-ranger.ts'

const plugin = createLimitRanger({ isEnabled: () => true })

function range(...limits: object[]): World {
  return { limitranges: [{ metadata: { name: 'limits' }, spec: { limits } }] }
}

function pod(resources: object = {}, rest: object = {}): object {
  return { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', resources }], ...rest } }
}

describe('LimitRanger', () => {
  it('sets missing requests and limits of containers and records them in an annotation', async () => {
    const world = range({
      type: 'Container',
      default: { memory: '64Mi', cpu: '1' },
      defaultRequest: { cpu: '100m', memory: '32Mi' },
    })
    const object = pod(
      { limits: { cpu: '2' }, requests: { cpu: '200m' } },
      { initContainers: [{ name: 'i', resources: {} }] },
    )
    const admitted = (await admit(plugin, { resource: 'pods', object, world })) as Pod
    assert.deepEqual(admitted.spec.containers[0]!.resources, {
      limits: { cpu: '2', memory: '64Mi' },
      requests: { cpu: '200m', memory: '32Mi' },
    })
    assert.deepEqual(admitted.spec.initContainers![0]!.resources, {
      limits: { cpu: '1', memory: '64Mi' },
      requests: { cpu: '100m', memory: '32Mi' },
    })
    assert.equal(
      admitted.metadata.annotations!['kubernetes.io/limit-ranger'],
      'LimitRanger plugin set: memory request for container c; memory limit for container c; cpu, memory request for init container i; cpu, memory limit for init container i',
    )
  })

  it('leaves a pod unchanged if no value is missing or no LimitRange exists', async () => {
    const object = pod({ limits: { cpu: '1' } })
    assert.deepEqual(await admit(plugin, { resource: 'pods', object }), object)
    const world = range({ type: 'Container', default: { cpu: '3' } })
    assert.deepEqual(await admit(plugin, { resource: 'pods', object, world }), object)
  })

  const min = { type: 'Container', min: { cpu: '100m' } }
  const max = { type: 'Container', max: { memory: '1Gi' } }
  const ratio = { type: 'Container', maxLimitRequestRatio: { cpu: '2' } }
  const forPod = { type: 'Pod', max: { cpu: '1' } }
  const table: readonly [what: string, limit: object, object: object, message: string | undefined][] = [
    [
      'that has no request if the range has a minimum',
      min,
      pod(),
      'minimum cpu usage per Container is 100m.  No request is specified',
    ],
    [
      'whose request is below the minimum',
      min,
      pod({ requests: { cpu: '50m' } }),
      'minimum cpu usage per Container is 100m, but request is 50m',
    ],
    [
      'whose limit is below the minimum',
      min,
      pod({ requests: { cpu: '100m' }, limits: { cpu: '99m' } }),
      'minimum cpu usage per Container is 100m, but limit is 99m',
    ],
    ['that requests exactly the minimum', min, pod({ requests: { cpu: '100m' } }), undefined],
    [
      'that has no limit if the range has a maximum',
      max,
      pod(),
      'maximum memory usage per Container is 1Gi.  No limit is specified',
    ],
    [
      'whose limit is above the maximum',
      max,
      pod({ limits: { memory: '2Gi' } }),
      'maximum memory usage per Container is 1Gi, but limit is 2Gi',
    ],
    [
      'whose request is above the maximum',
      max,
      pod({ limits: { memory: '1Gi' }, requests: { memory: '3Gi' } }),
      'maximum memory usage per Container is 1Gi, but request is 3Gi',
    ],
    ['that requests exactly the maximum', max, pod({ limits: { memory: '1024Mi' } }), undefined],
    [
      'that has no request if the range has a maxLimitRequestRatio',
      ratio,
      pod({ limits: { cpu: '1' } }),
      'cpu max limit to request ratio per Container is 2, but no request is specified or request is 0',
    ],
    [
      'that has no limit if the range has a maxLimitRequestRatio',
      ratio,
      pod({ requests: { cpu: '1' } }),
      'cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0',
    ],
    [
      'whose limit exceeds the maximum ratio to its request',
      ratio,
      pod({ requests: { cpu: '300m' }, limits: { cpu: '1' } }),
      'cpu max limit to request ratio per Container is 2, but provided ratio is 3.333333',
    ],
    [
      'whose limit is within the maximum ratio to its request',
      ratio,
      pod({ requests: { cpu: '500m' }, limits: { cpu: '1' } }),
      undefined,
    ],
    [
      'whose containers together exceed the maximum',
      forPod,
      pod(
        { limits: { cpu: '600m' } },
        { initContainers: [{ name: 'i', restartPolicy: 'Always', resources: { limits: { cpu: '600m' } } }] },
      ),
      'maximum cpu usage per Pod is 1, but limit is 1200m',
    ],
    [
      'whose pod-level resources exceed the maximum',
      forPod,
      pod({}, { resources: { limits: { cpu: '2' } } }),
      'maximum cpu usage per Pod is 1, but limit is 2',
    ],
  ]
  for (const [what, limit, object, message] of table) {
    it(`validates a pod ${what}`, async () => {
      const expected = message === undefined ? undefined : `pods "p" is forbidden: ${message}`
      assert.equal(await refusal(plugin, { resource: 'pods', object, world: range(limit) }), expected)
    })
  }

  it('reports all violations of a LimitRange at once', async () => {
    const world = range({ type: 'Container', min: { memory: '1Mi', cpu: '1' } })
    assert.equal(
      await refusal(plugin, { resource: 'pods', object: pod(), world }),
      'pods "p" is forbidden: [minimum cpu usage per Container is 1.  No request is specified, minimum memory usage per Container is 1Mi.  No request is specified]',
    )
  })

  it('checks pods only on creation and resize, not on deletion', async () => {
    const world = range(min)
    assert.equal(await refusal(plugin, { resource: 'pods', object: pod(), oldObject: pod(), world }), undefined)
    const resize = { resource: 'pods', subresource: 'resize', object: pod(), oldObject: pod(), world }
    assert.match((await refusal(plugin, resize)) ?? '', /No request is specified/)
    const going = { metadata: { name: 'p', deletionTimestamp: '2026-01-01T00:00:00Z' }, spec: {} }
    assert.equal(await refusal(plugin, { ...resize, oldObject: going }), undefined)
  })

  it('limits the storage requests of PersistentVolumeClaims', async () => {
    const world = range({ type: 'PersistentVolumeClaim', min: { storage: '1Gi' }, max: { storage: '2Gi' } })
    const claim = (storage?: string): object => ({
      metadata: { name: 'c' },
      spec: { resources: { requests: storage === undefined ? {} : { storage } } },
    })
    const refusalOf = (object: object): Promise<string | undefined> =>
      refusal(plugin, { resource: 'persistentvolumeclaims', object, world })
    assert.equal(await refusalOf(claim('1500Mi')), undefined)
    assert.equal(
      await refusalOf(claim('1Mi')),
      'persistentvolumeclaims "c" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi',
    )
    assert.equal(
      await refusalOf(claim('3Gi')),
      'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi',
    )
  })
})
