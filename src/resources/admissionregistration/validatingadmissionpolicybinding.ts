/** ValidatingAdmissionPolicyBinding: where a policy applies, with which parameters, and what a violation does. */
import {
  ValidatingAdmissionPolicyBindings,
  type ValidatingAdmissionPolicyBinding,
} from '#apis/admissionregistration/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { asJson, duplicate, type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'

import { oneOfSet } from './match-rules.ts'
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
  return [
    ...list.flatMap((action, at) => [
      ...oneOfSet(index(field, at), action, actions),
      ...(list.indexOf(action) < at ? [duplicate(index(field, at), asJson(action))] : []),
    ]),
    ...(list.includes('Deny') && list.includes('Warn') ? [invalid(field, list, TWICE)] : []),
    ...(list.length === 0 ? [required(field, 'at least one validation action is required')] : []),
  ]
}
