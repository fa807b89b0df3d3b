/** Tests that custom resources with kinds named like those of Kubernetes are read as any other. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject } from '#meta/object.ts'

import { usedRefs } from '../related/references.ts'
import { kubernetesKind } from './kubernetes-kind.ts'
import { podsOf } from './pods-of.ts'
import { stateOf } from './state-of.ts'

describe('kubernetesKind()', () => {
  it('is the kind of objects of Kubernetes only', () => {
    assert.equal(kubernetesKind({ apiVersion: 'v1', kind: 'Pod' }), 'Pod')
    assert.equal(kubernetesKind({ apiVersion: 'apps/v1', kind: 'Deployment' }), 'Deployment')
    for (const kind of ['Pod', 'Node', 'Job', 'Unknown', 'constructor', 'toString', ''])
      assert.equal(kubernetesKind({ apiVersion: 'example.com/v1', kind }), '')
  })

  it('lets custom resources of any kind and shape have a page', () => {
    for (const kind of ['Pod', 'Node', 'Deployment', 'Ingress', 'PersistentVolumeClaim', 'constructor', 'valueOf']) {
      for (const fields of [{}, { spec: 'text', status: 'text' }, { spec: { containers: 1 }, status: { phase: 2 } }]) {
        const object = { apiVersion: 'example.com/v1', kind, metadata: { name: 'a' }, ...fields } as KubeObject
        assert.deepEqual([stateOf(object), usedRefs(object), podsOf(object)], [undefined, [], undefined])
      }
    }
  })
})
