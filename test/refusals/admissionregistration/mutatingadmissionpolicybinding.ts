import { MutatingAdmissionPolicyBindings } from '#apis/admissionregistration/v1.ts'

import type { KindCases } from '../case.ts'
import { badMetadataUpdates } from '../metadata.ts'
import { badPolicyBindings, matchConstraints } from './policies.ts'

export const mutatingAdmissionPolicyBinding: KindCases = {
  kind: MutatingAdmissionPolicyBindings,
  valid: { metadata: { name: 'refused' }, spec: { policyName: 'absent', matchResources: matchConstraints } },
  refused: [
    ...badPolicyBindings,
    { why: 'a change of a deleted object', set: { '/spec/matchResources/resourceRules/0/operations': ['DELETE'] } },
    ...badMetadataUpdates,
  ],
}
