/** DefaultStorageClass: claims that name no class get the default one. */
import type { PersistentVolumeClaim } from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { STORAGE_CLASS_ANNOTATION } from '#model/volumes.ts'

import { newestDefault } from './kit/newest-default.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const MARKS = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class']

export const defaultStorageClass: AdmissionPlugin = defineAdmission({
  name: 'DefaultStorageClass',
  on: ['CREATE'],
  resources: ['persistentvolumeclaims'],

  mutate(attributes) {
    const { metadata, spec } = attributes.object as PersistentVolumeClaim
    // An empty name is an answer too: no class.
    if (spec.storageClassName !== undefined) return
    if (Object.hasOwn(metadata.annotations ?? {}, STORAGE_CLASS_ANNOTATION)) return
    return nameDefault(attributes, spec)
  },
})

async function nameDefault({ objects }: Attributes, spec: PersistentVolumeClaim['spec']): Promise<void> {
  const name = newestDefault(await objects.list(StorageClasses, ''), MARKS)?.metadata.name
  if (name !== undefined) spec.storageClassName = name
}
