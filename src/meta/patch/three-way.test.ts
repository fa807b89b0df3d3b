import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { pod } from '#kits/meta/example-schema.ts'

import { strategicMerge } from './strategic-merge.ts'
import { threeWayMergePatch, threeWayStrategicPatch } from './three-way.ts'

type Map = Record<string, unknown>

function container(name: string, image: string): Map {
  return { name, image }
}

function podOf(...containers: Map[]): Map {
  return { containers }
}

describe('three-way strategic merge patch', () => {
  const original = podOf(container('a', '1'), container('b', '1'))

  it('is empty without changes', () => {
    const current = podOf(container('a', '1'), container('b', '1'))
    assert.deepEqual(threeWayStrategicPatch(pod, { original, modified: original, current }), {})
  })

  it('removes fields that the new configuration lacks, and keeps fields of other clients', () => {
    const modified = podOf(container('a', '2'))
    const current = podOf(container('a', '1'), container('b', '1'), container('sidecar', '9'))
    const patch = threeWayStrategicPatch(pod, { original, modified, current })
    const { containers } = strategicMerge(pod, current, patch)
    assert.deepEqual(containers, [container('a', '2'), container('sidecar', '9')])
  })

  it('resets fields that other clients changed', () => {
    const current = podOf(container('a', 'by hand'), container('b', '1'))
    const patch = threeWayStrategicPatch(pod, { original, modified: original, current })
    assert.deepEqual(strategicMerge(pod, current, patch), original)
  })

  it('replaces the source of a volume, even if another client set it', () => {
    const modified = { volumes: [{ name: 'data', emptyDir: {} }] }
    const current = { volumes: [{ name: 'data', hostPath: { value: '/x' } }] }
    for (const last of [{}, current]) {
      const patch = threeWayStrategicPatch(pod, { original: last, modified, current })
      const [volume] = patch['volumes'] as Map[]
      assert.deepEqual(volume?.['$retainKeys'], ['emptyDir', 'name'])
      assert.deepEqual(strategicMerge(pod, current, patch), modified)
    }
  })

  it('applies $retainKeys only to list elements that changed', () => {
    const volumes = [{ name: 'data', emptyDir: {} }]
    const patch = threeWayStrategicPatch(pod, { original: { volumes }, modified: { volumes }, current: { volumes } })
    assert.deepEqual(patch, {})
  })
})

describe('three-way merge patch', () => {
  it('removes fields that the new configuration lacks, and keeps fields of other clients', () => {
    const patch = threeWayMergePatch({
      original: { spec: { a: 1, gone: 1 } },
      modified: { spec: { a: 2 } },
      current: { spec: { a: 1, gone: 1, theirs: 1 } },
    })
    assert.deepEqual(patch, { spec: { a: 2, gone: null } })
  })
})
