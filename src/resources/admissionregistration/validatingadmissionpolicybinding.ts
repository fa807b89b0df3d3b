/** The ValidatingAdmissionPolicyBinding resource: the scope, parameters and actions of a policy. */
import {
  ValidatingAdmissionPolicies,
  ValidatingAdmissionPolicyBindings,
  type ValidatingAdmissionPolicyBinding,
} from '#apis/admissionregistration/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { createRepetition } from '#lib/repetition.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { oneOfSet } from '#meta/validation/rules.ts'

import { guardParamRef, type ParamAccess } from './param-access.ts'
import { bindingRules } from './policy-binding.ts'

export const validatingAdmissionPolicyBinding: Resource<ValidatingAdmissionPolicyBinding> =
  defineResource<ValidatingAdmissionPolicyBinding>({
    ...bindingRules<ValidatingAdmissionPolicyBinding>(({ validationActions = [] }) =>
      validateActions(fieldPath('spec.validationActions'), validationActions),
    ),
    kind: ValidatingAdmissionPolicyBindings,
  })

const actions = ['Deny', 'Warn', 'Audit']
const TWICE =
  'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)'

function validateActions(path: FieldPath, list: readonly string[]): FieldError[] {
  const isRepeated = createRepetition()
  return collectErrors(
    path.each(list, (path, action) =>
      collectErrors(oneOfSet(path, action, actions), isRepeated(action) && path.duplicate(asJson(action))),
    ),
    list.includes('Deny') && list.includes('Warn') && path.invalid(list, TWICE),
    list.length === 0 && path.required('at least one validation action is required'),
  )
}

/** Without an authorizer, every user who may write bindings may use any parameters. */
export function defineValidatingAdmissionPolicyBinding(
  access: ParamAccess | undefined,
): Resource<ValidatingAdmissionPolicyBinding> {
  return guardParamRef(validatingAdmissionPolicyBinding, access, {
    policies: ValidatingAdmissionPolicies,
    refusal: (user, verb) => `user ${user} does not have "${verb}" permission on the object referenced by paramRef`,
  })
}
