/**
 * StorageObjectInUseProtection: adds the finalizers that protect volumes, claims and VolumeAttributesClasses while they
 * are in use.
 */
import { addFinalizer } from '#meta/object.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const FINALIZERS: ReadonlyMap<string, string> = new Map([
  ['persistentvolumes', 'kubernetes.io/pv-protection'],
  ['persistentvolumeclaims', 'kubernetes.io/pvc-protection'],
  ['volumeattributesclasses', 'kubernetes.io/vac-protection'],
])

export const storageObjectInUseProtection: AdmissionPlugin = defineAdmission({
  name: 'StorageObjectInUseProtection',
  on: ['CREATE'],
  resources: ['persistentvolumes', 'persistentvolumeclaims', 'volumeattributesclasses.storage.k8s.io'],

  mutate({ kind, object }) {
    const finalizer = FINALIZERS.get(kind.plural)
    if (object !== undefined && finalizer !== undefined) addFinalizer(object, finalizer)
  },
})
