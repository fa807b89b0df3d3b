/** AlwaysDeny: refuses all writes, for tests and maintenance. */
import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export const alwaysDeny: AdmissionPlugin = defineAdmission({
  name: 'AlwaysDeny',
  on: ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'],

  validate(attributes) {
    throw refuse(attributes, 'admission control is denying all modifications')
  },
})
