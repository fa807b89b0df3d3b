import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { admit } from '#kits/admission/sample-write.ts'

import { storageObjectInUseProtection } from './storage-object-in-use-protection.ts'

describe('StorageObjectInUseProtection', () => {
  for (const [resource, finalizer] of [
    ['persistentvolumes', 'kubernetes.io/pv-protection'],
    ['persistentvolumeclaims', 'kubernetes.io/pvc-protection'],
    ['volumeattributesclasses.storage.k8s.io', 'kubernetes.io/vac-protection'],
  ] as const) {
    it(`adds the protection finalizer to new ${resource}`, async () => {
      const once = await admit(storageObjectInUseProtection, { resource, object: { metadata: { name: 'x' } } })
      assert.deepEqual(once!.metadata.finalizers, [finalizer])
      const twice = await admit(storageObjectInUseProtection, { resource, object: once! })
      assert.deepEqual(twice!.metadata.finalizers, [finalizer])
    })
  }
})
