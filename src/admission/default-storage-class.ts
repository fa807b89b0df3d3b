/** DefaultStorageClass: sets the default class of claims without one. */
import type { PersistentVolumeClaim } from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { newestDefault } from '#model/newest-default.ts'
import { DEFAULT_STORAGE_CLASS_MARKS, hasStorageClass } from '#model/volumes/volumes.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export const defaultStorageClass: AdmissionPlugin = defineAdmission({
  name: 'DefaultStorageClass',
  on: ['CREATE'],
  resources: ['persistentvolumeclaims'],

  mutate(attributes) {
    const claim = attributes.object as PersistentVolumeClaim
    // An empty name is explicit: no class.
    return hasStorageClass(claim) ? undefined : nameDefault(attributes, claim.spec)
  },
})

async function nameDefault({ objects }: Attributes, spec: PersistentVolumeClaim['spec']): Promise<void> {
  const name = newestDefault(await objects.list(StorageClasses, ''), DEFAULT_STORAGE_CLASS_MARKS)?.metadata.name
  if (name !== undefined) spec.storageClassName = name
}
