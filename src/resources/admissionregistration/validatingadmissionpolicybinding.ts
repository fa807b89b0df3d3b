/** ValidatingAdmissionPolicyBinding: where a policy applies, with which parameters, and what a violation does. */
import {
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
  type ValidatingAdmissionPolicyBinding,
} from '#apis/admissionregistration/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { createRepetition } from '#lib/repetition.ts'
import { asJson, duplicate, type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'

import { oneOfSet } from './match-rules.ts'
import { guardParamRef, type ParamAccess } from './param-access.ts'
import { bindingRules } from './policy-binding.ts'

export const validatingAdmissionPolicyBinding: Resource<ValidatingAdmissionPolicyBinding> =
  defineResource<ValidatingAdmissionPolicyBinding>({
    ...bindingRules<ValidatingAdmissionPolicyBinding>(({ validationActions = [] }) =>
      validateActions('spec.validationActions', validationActions),
    ),
    kind: ValidatingAdmissionPolicyBindings,
  })

const actions = ['Deny', 'Warn', 'Audit']
const TWICE =
  'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)'

function validateActions(field: string, list: readonly string[]): FieldError[] {
  const isRepeated = createRepetition()
  return [
    ...list.flatMap((action, at) => [
      ...oneOfSet(index(field, at), action, actions),
      ...(isRepeated(action) ? [duplicate(index(field, at), asJson(action))] : []),
    ]),
    ...(list.includes('Deny') && list.includes('Warn') ? [invalid(field, list, TWICE)] : []),
    ...(list.length === 0 ? [required(field, 'at least one validation action is required')] : []),
  ]
}

/** Without somebody to ask, whoever may write bindings may name all parameters. */
export function defineValidatingAdmissionPolicyBinding(
  access: ParamAccess | undefined,
): Resource<ValidatingAdmissionPolicyBinding> {
  return guardParamRef(validatingAdmissionPolicyBinding, access, {
    policies: ValidatingAdmissionPolicies,
    refusal: (user, verb) => `user ${user} does not have "${verb}" permission on the object referenced by paramRef`,
  })
}
