import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { refusal } from '#kits/admission/sample-write.ts'

import { persistentVolumeClaimResize } from './persistent-volume-claim-resize.ts'

describe('PersistentVolumeClaimResize', () => {
  const claim = (storage: string, rest: object = {}): object => ({
    metadata: { name: 'c' },
    spec: { storageClassName: 'gold', resources: { requests: { storage } }, ...rest },
    status: { phase: 'Bound' },
  })
  const world = {
    'storageclasses.storage.k8s.io': [
      { metadata: { name: 'gold' }, allowVolumeExpansion: true },
      { metadata: { name: 'lead' } },
    ],
  }
  const refusalOf = (object: object, oldObject: object): Promise<string | undefined> =>
    refusal(persistentVolumeClaimResize, { resource: 'persistentvolumeclaims', object, oldObject, world })
  const cannot =
    'persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize'

  it('allows only bound claims to grow, and only if their StorageClass allows expansion', async () => {
    assert.equal(await refusalOf(claim('2Gi'), claim('1Gi')), undefined)
    assert.equal(await refusalOf(claim('1Gi'), claim('1024Mi')), undefined)
    assert.equal(
      await refusalOf(claim('2Gi', { storageClassName: 'lead' }), claim('1Gi', { storageClassName: 'lead' })),
      cannot,
    )
    assert.equal(await refusalOf(claim('2Gi', { storageClassName: 'lead' }), claim('1Gi')), cannot)
    assert.equal(
      await refusalOf(claim('2Gi'), { ...claim('1Gi'), status: { phase: 'Pending' } }),
      'persistentvolumeclaims "c" is forbidden: Only bound persistent volume claims can be expanded',
    )
  })
})
