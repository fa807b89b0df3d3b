/** MutatingAdmissionPolicyBinding: where a policy applies, and with which parameters. */
import { MutatingAdmissionPolicyBindings, type MutatingAdmissionPolicyBinding } from '#apis/admissionregistration/v1.ts'
import { MutatingAdmissionPolicyBindings as AlphaBindings } from '#apis/admissionregistration/v1alpha1.ts'
import { MutatingAdmissionPolicyBindings as BetaBindings } from '#apis/admissionregistration/v1beta1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import type { FieldError } from '#meta/validation/field-error.ts'

import {
  defaultMatchResources,
  paramRefText,
  validateMatchResources,
  validateMutatingOperations,
  validateParamRef,
  validatePolicyName,
} from './policies.ts'
import { staticNameWarnings, validateStaticName } from './static-name.ts'

export const mutatingAdmissionPolicyBinding: Resource<MutatingAdmissionPolicyBinding> =
  defineResource<MutatingAdmissionPolicyBinding>({
    kind: MutatingAdmissionPolicyBindings,
    otherVersions: [BetaBindings, AlphaBindings].map((kind) => ({ kind, applyDefaults: applyBindingDefaults })),
    generation: 'spec',
    applyDefaults: applyBindingDefaults,
    validate: (object, context) => [...validateBinding(object), ...validateStaticName(object, context)],
    validateUpdate: validateBinding,
    warnings: staticNameWarnings,
    columns: [
      nameColumn,
      { name: 'PolicyName', value: ({ spec }) => spec.policyName ?? '' },
      { name: 'ParamRef', value: ({ spec }) => paramRefText(spec.paramRef) },
      ageColumn,
    ],
    putNeedsVersion: true,
  })

/** The same in all versions. */
function applyBindingDefaults(object: KubeObject): void {
  defaultMatchResources((object as MutatingAdmissionPolicyBinding).spec.matchResources)
}

function validateBinding({ spec }: MutatingAdmissionPolicyBinding): FieldError[] {
  return [
    ...validatePolicyName(spec.policyName),
    ...validateParamRef('spec.paramRef', spec.paramRef),
    ...validateMatchResources('spec.matchResources', spec.matchResources),
    ...validateMutatingOperations('spec.matchResources', spec.matchResources),
  ]
}
