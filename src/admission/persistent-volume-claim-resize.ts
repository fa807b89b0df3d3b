/** PersistentVolumeClaimResize: a claim may grow only if it is bound and its storage class allows expansion. */
import type { PersistentVolumeClaim } from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { compareQuantities, parseQuantity, type Quantity } from '#meta/quantity.ts'
import { storageClassOf } from '#model/volumes/volumes.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export const persistentVolumeClaimResize: AdmissionPlugin = defineAdmission({
  name: 'PersistentVolumeClaimResize',
  on: ['UPDATE'],
  resources: ['persistentvolumeclaims'],

  validate(attributes) {
    const next = attributes.object as PersistentVolumeClaim
    const old = attributes.oldObject as PersistentVolumeClaim
    if (compareQuantities(sizeOf(next), sizeOf(old)) <= 0) return
    if (old.status?.phase !== 'Bound') {
      throw refuse(attributes, 'Only bound persistent volume claims can be expanded')
    }
    return requireExpandable(attributes, next, old)
  },
})

function sizeOf({ spec }: PersistentVolumeClaim): Quantity {
  return parseQuantity(spec.resources?.requests?.['storage'] ?? '0')
}

async function requireExpandable(
  attributes: Attributes,
  next: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
): Promise<void> {
  const name = storageClassOf(next)
  const isSame = name !== '' && name === storageClassOf(old)
  const found = isSame ? await attributes.objects.get(StorageClasses, '', name) : undefined
  if (found?.allowVolumeExpansion === true) return
  throw refuse(
    attributes,
    'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
  )
}
