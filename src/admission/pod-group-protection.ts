/** PodGroupProtection: adds the finalizer that protects a PodGroup until its last pod is gone. */
import { addFinalizer } from '#meta/object.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface PodGroupProtectionOptions {
  readonly isEnabled: (gate: string) => boolean
}

export function createPodGroupProtection({ isEnabled }: PodGroupProtectionOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'PodGroupProtection',
    on: ['CREATE'],
    resources: ['podgroups.scheduling.k8s.io'],

    mutate({ object }) {
      if (object === undefined || !isEnabled('GenericWorkload')) return
      addFinalizer(object, 'scheduling.k8s.io/podgroup-protection')
    },
  })
}
