/** MutatingAdmissionPolicyBinding: where a policy applies, and with which parameters. */
import {
  MutatingAdmissionPolicies,
  MutatingAdmissionPolicyBindings,
  type MutatingAdmissionPolicyBinding,
} from '#apis/admissionregistration/v1.ts'
import { MutatingAdmissionPolicyBindings as AlphaBindings } from '#apis/admissionregistration/v1alpha1.ts'
import { MutatingAdmissionPolicyBindings as BetaBindings } from '#apis/admissionregistration/v1beta1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'

import { guardParamRef, type ParamAccess } from './param-access.ts'
import { validateMutatingOperations } from './policies.ts'
import { bindingRules } from './policy-binding.ts'

const rules = bindingRules<MutatingAdmissionPolicyBinding>(({ matchResources }) =>
  validateMutatingOperations('spec.matchResources', matchResources),
)

export const mutatingAdmissionPolicyBinding: Resource<MutatingAdmissionPolicyBinding> =
  defineResource<MutatingAdmissionPolicyBinding>({
    ...rules,
    // Upstream still stores the version before.
    kind: BetaBindings,
    otherVersions: [MutatingAdmissionPolicyBindings, AlphaBindings].map((kind) => ({
      kind,
      applyDefaults: rules.applyDefaults,
    })),
  })

/** Without somebody to ask, whoever may write bindings may name all parameters. */
export function defineMutatingAdmissionPolicyBinding(
  access: ParamAccess | undefined,
): Resource<MutatingAdmissionPolicyBinding> {
  return guardParamRef(mutatingAdmissionPolicyBinding, access, {
    policies: MutatingAdmissionPolicies,
    // Upstream has mixed the two up.
    refusal: (user, verb) => `user ${verb} does not have "${user}" permission on the object referenced by paramRef`,
  })
}
