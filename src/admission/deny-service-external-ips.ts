/** DenyServiceExternalIPs: refuses Services that add external IPs. */
import type { Service } from '#apis/core/v1.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export const denyServiceExternalIps: AdmissionPlugin = defineAdmission({
  name: 'DenyServiceExternalIPs',
  on: ['CREATE', 'UPDATE'],
  resources: ['services'],

  validate(attributes) {
    const known = (attributes.oldObject as Service | undefined)?.spec.externalIPs ?? []
    const { externalIPs = [] } = (attributes.object as Service).spec
    if (externalIPs.every((ip) => known.includes(ip))) return
    throw refuse(attributes, 'Use of external IPs is denied by admission control')
  },
})
