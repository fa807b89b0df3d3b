/**
 * LimitPodHardAntiAffinityTopology: refuses required pod anti-affinity with a topology key other than the host name.
 */
import type { Pod } from '#apis/core/v1.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const HOSTNAME = 'kubernetes.io/hostname'

export const limitPodHardAntiAffinityTopology: AdmissionPlugin = defineAdmission({
  name: 'LimitPodHardAntiAffinityTopology',
  on: ['CREATE', 'UPDATE'],
  resources: ['pods'],

  validate(attributes) {
    const { affinity } = (attributes.object as Pod).spec
    const terms = affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
    const wide = terms.find(({ topologyKey }) => topologyKey !== HOSTNAME)
    if (wide === undefined) return
    const rule = 'affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey'
    throw refuse(attributes, `${rule} ${wide.topologyKey} but only key ${HOSTNAME} is allowed`)
  },
})
