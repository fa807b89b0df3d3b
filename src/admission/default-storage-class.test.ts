import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PersistentVolumeClaim } from '#apis/core/v1.ts'
import type { Ingress } from '#apis/networking/v1.ts'
import { admit } from '#kits/admission/sample-write.ts'

import { defaultIngressClass } from './default-ingress-class.ts'
import { defaultStorageClass } from './default-storage-class.ts'

describe('DefaultStorageClass and DefaultIngressClass', () => {
  const marked = (name: string, annotation: string, made: string): object => ({
    metadata: { name, annotations: { [annotation]: 'true' }, creationTimestamp: made },
  })
  const storage = 'storageclass.kubernetes.io/is-default-class'
  const claim = (spec: object = {}, annotations?: object): object => ({ metadata: { name: 'c', annotations }, spec })

  it('use the newest class if several are marked as default', async () => {
    const world = {
      'storageclasses.storage.k8s.io': [
        marked('old', storage, '2026-01-01T00:00:00Z'),
        marked('b', storage, '2026-01-02T00:00:00Z'),
        marked('a', 'storageclass.beta.kubernetes.io/is-default-class', '2026-01-02T00:00:00Z'),
        { metadata: { name: 'none', creationTimestamp: '2026-01-03T00:00:00Z' } },
      ],
      'ingressclasses.networking.k8s.io': [
        marked('nginx', 'ingressclass.kubernetes.io/is-default-class', '2026-01-01T00:00:00Z'),
      ],
    }
    const found = (await admit(defaultStorageClass, {
      resource: 'persistentvolumeclaims',
      object: claim(),
      world,
    })) as PersistentVolumeClaim
    assert.equal(found.spec.storageClassName, 'a')
    const ingress = (await admit(defaultIngressClass, {
      resource: 'ingresses.networking.k8s.io',
      object: claim(),
      world,
    })) as Ingress
    assert.equal(ingress.spec.ingressClassName, 'nginx')
    const old = claim({}, { 'kubernetes.io/ingress.class': 'x' })
    assert.deepEqual(
      await admit(defaultIngressClass, { resource: 'ingresses.networking.k8s.io', object: old, world }),
      old,
    )
    for (const object of [
      claim({ storageClassName: '' }),
      claim({ storageClassName: 'x' }),
      claim({}, { 'volume.beta.kubernetes.io/storage-class': '' }),
    ]) {
      const kept = await admit(defaultStorageClass, { resource: 'persistentvolumeclaims', object, world })
      assert.deepEqual(kept, object)
    }
  })

  it('leave an object unchanged if no class is marked as default', async () => {
    const object = claim()
    assert.deepEqual(await admit(defaultStorageClass, { resource: 'persistentvolumeclaims', object }), object)
    assert.deepEqual(await admit(defaultIngressClass, { resource: 'ingresses.networking.k8s.io', object }), object)
  })
})
