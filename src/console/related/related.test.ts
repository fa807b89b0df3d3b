/** Tests what an object uses, and what uses it. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { KubeObject } from '#meta/object.ts'

import { usedRefs, usersOf } from './references.ts'

const metadata = { name: 'web', namespace: 'shop', labels: { app: 'web' } }
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata,
  spec: {
    nodeName: 'node-0',
    serviceAccountName: 'runner',
    volumes: [
      { name: 'a', configMap: { name: 'conf' } },
      { name: 'b', persistentVolumeClaim: { claimName: 'disk' } },
      { name: 'c', projected: { sources: [{ secret: { name: 'token' } }] } },
    ],
    containers: [
      {
        name: 'a',
        env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 'pass', key: 'k' } } }],
        envFrom: [{ configMapRef: { name: 'conf' } }],
      },
    ],
  },
} as KubeObject
const ingress = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { name: 'in', namespace: 'shop' },
  spec: { tls: [{ secretName: 'cert' }], rules: [{ http: { paths: [{ backend: { service: { name: 'web' } } }] } }] },
} as KubeObject

const OBJECTS: readonly (readonly [object: KubeObject, refs: string])[] = [
  [pod, 'Node node-0, ServiceAccount runner, ConfigMap conf, PersistentVolumeClaim disk, Secret token, Secret pass'],
  [ingress, 'Service web, Secret cert'],
  [
    {
      kind: 'Deployment',
      metadata,
      spec: { template: { spec: { containers: [], serviceAccountName: 'runner' } } },
    } as KubeObject,
    'ServiceAccount runner',
  ],
  [{ kind: 'PersistentVolumeClaim', metadata, spec: { volumeName: 'pv-1' } } as KubeObject, 'PersistentVolume pv-1'],
  [{ kind: 'ConfigMap', metadata }, ''],
]

describe('usedRefs()', () => {
  for (const [object, refs] of OBJECTS) {
    it(`finds what ${object.kind} names`, () =>
      assert.equal(
        usedRefs(object)
          .map(({ kind, name }) => `${kind} ${name}`)
          .join(', '),
        refs,
      ))
  }
})

describe('usersOf()', () => {
  const service = (selector: object): KubeObject =>
    ({ kind: 'Service', metadata: { name: 's', namespace: 'shop' }, spec: { selector } }) as KubeObject
  const named = (kind: string, name: string, namespace = 'shop'): KubeObject => ({
    kind,
    metadata: { name, namespace },
  })

  it('finds pods and Ingresses that name an object of the same namespace', () => {
    assert.deepEqual(usersOf(named('Secret', 'pass'), [pod, ingress]), [pod])
    assert.deepEqual(usersOf(named('Secret', 'cert'), [pod, ingress]), [ingress])
    assert.deepEqual(usersOf(named('Secret', 'pass', 'other'), [pod, ingress]), [])
    assert.deepEqual(usersOf(named('ServiceAccount', 'runner'), [pod]), [pod])
  })

  it('finds Services that select the pods', () => {
    const [fits, other] = [service({ app: 'web' }), service({ app: 'api' })]
    assert.deepEqual(usersOf(pod, [fits, other, service({})]), [fits])
    const deployment = {
      kind: 'Deployment',
      metadata,
      spec: { template: { metadata: { labels: { app: 'web' } } } },
    } as KubeObject
    assert.deepEqual(usersOf(deployment, [fits, other]), [fits])
  })
})
