import { ValidatingAdmissionPolicyBindings } from '#apis/admissionregistration/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badPolicyBindings, matchConstraints } from './policies.ts'

export const validatingAdmissionPolicyBinding: KindCases = {
  kind: ValidatingAdmissionPolicyBindings,
  valid: {
    metadata: { name: 'refused' },
    spec: { policyName: 'absent', validationActions: ['Deny'], matchResources: matchConstraints },
  },
  refused: [
    ...badPolicyBindings,
    { why: 'no actions', set: { '/spec/validationActions': [] } },
    { why: 'missing actions', set: { '/spec/validationActions': undefined } },
    { why: 'an unknown action', set: { '/spec/validationActions': ['Shout'] } },
    { why: 'a repeated action', set: { '/spec/validationActions': ['Audit', 'Audit'] } },
    { why: 'to deny and to warn', set: { '/spec/validationActions': ['Deny', 'Warn'] } },
    { why: 'the actions are removed', on: 'update', set: { '/spec/validationActions': [] } },
    ...badMetadataUpdates,
  ],
}
