/** The MutatingAdmissionPolicyBinding resource: the scope and parameters of a policy. */
import {
  MutatingAdmissionPolicies,
  MutatingAdmissionPolicyBindings,
  type MutatingAdmissionPolicyBinding,
} from '#apis/admissionregistration/v1.ts'
import { MutatingAdmissionPolicyBindings as AlphaBindings } from '#apis/admissionregistration/v1alpha1.ts'
import { MutatingAdmissionPolicyBindings as BetaBindings } from '#apis/admissionregistration/v1beta1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { guardParamRef, type ParamAccess } from './param-access.ts'
import { validateMutatingOperations } from './policies.ts'
import { bindingRules } from './policy-binding.ts'

const rules = bindingRules<MutatingAdmissionPolicyBinding>(({ matchResources }) =>
  validateMutatingOperations(fieldPath('spec.matchResources'), matchResources),
)

export const mutatingAdmissionPolicyBinding: Resource<MutatingAdmissionPolicyBinding> =
  defineResource<MutatingAdmissionPolicyBinding>({
    ...rules,
    // Upstream still stores the previous version.
    kind: BetaBindings,
    otherVersions: [MutatingAdmissionPolicyBindings, AlphaBindings].map((kind) => ({
      kind,
      applyDefaults: rules.applyDefaults,
    })),
  })

/** Without an authorizer, every user who may write bindings may use any parameters. */
export function defineMutatingAdmissionPolicyBinding(
  access: ParamAccess | undefined,
): Resource<MutatingAdmissionPolicyBinding> {
  return guardParamRef(mutatingAdmissionPolicyBinding, access, {
    policies: MutatingAdmissionPolicies,
    // Upstream confuses the two.
    refusal: (user, verb) => `user ${verb} does not have "${user}" permission on the object referenced by paramRef`,
  })
}
