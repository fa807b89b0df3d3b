/** ExtendedResourceToleration: adds a toleration for the taint of each extended resource that a pod requests. */
import type { Pod } from '#apis/core/v1.ts'
import { compareText } from '#lib/go/text.ts'
import { isExtendedResource } from '#model/pod-spec/containers/resource-names.ts'

import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export const extendedResourceToleration: AdmissionPlugin = defineAdmission({
  name: 'ExtendedResourceToleration',
  on: ['CREATE', 'UPDATE'],
  resources: ['pods'],

  mutate({ object }) {
    const { spec } = object as Pod
    const requested = [...(spec.containers ?? []), ...(spec.initContainers ?? [])].flatMap(({ resources }) =>
      Object.keys(resources?.requests ?? {}).filter(isExtendedResource),
    )
    for (const key of [...new Set(requested)].sort(compareText)) {
      const given = spec.tolerations ?? []
      const isThere = given.some(
        (one) => one.key === key && one.operator === 'Exists' && one.effect === 'NoSchedule' && !one.value,
      )
      if (!isThere) spec.tolerations = [...given, { key, operator: 'Exists', effect: 'NoSchedule' }]
    }
  },
})
