/** AlwaysDeny: a server that takes no writes; for tests and for maintenance. */
import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export const alwaysDeny: AdmissionPlugin = defineAdmission({
  name: 'AlwaysDeny',
  on: ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'],

  validate(attributes) {
    throw refuse(attributes, 'admission control is denying all modifications')
  },
})
