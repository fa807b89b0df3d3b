/** The parts that both kinds of policy bindings share: scope and parameters. */
import type { MatchResources, ParamRef } from '#apis/admissionregistration/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import type { ResourceSpec } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

import {
  defaultMatchResources,
  paramRefText,
  validateMatchResources,
  validateParamRef,
  validatePolicyName,
} from './policies.ts'
import { staticNameWarnings, validateStaticName } from './static-name.ts'

export interface PolicyBinding extends KubeObject {
  readonly spec: {
    readonly policyName?: string
    readonly paramRef?: ParamRef
    readonly matchResources?: MatchResources
  }
}

type SharedMember =
  | 'metadataRules'
  | 'generation'
  | 'validate'
  | 'validateUpdate'
  | 'warnings'
  | 'columns'
  | 'putNeedsVersion'

/** Everything except the kind; `validateOwn` has the rules of one kind. */
export function bindingRules<T extends PolicyBinding>(
  validateOwn: (spec: T['spec']) => FieldError[],
): Pick<ResourceSpec<T>, SharedMember> & { readonly applyDefaults: (object: KubeObject) => void } {
  const validateBinding = ({ spec }: T): FieldError[] => [
    ...validatePolicyName(spec.policyName),
    ...validateParamRef(fieldPath('spec.paramRef'), spec.paramRef),
    ...validateMatchResources(fieldPath('spec.matchResources'), spec.matchResources),
    ...validateOwn(spec),
  ]
  return {
    metadataRules: { update: ['whole'], plainFinalizers: true },
    generation: 'spec',
    // Equal in all versions.
    applyDefaults: (object) => defaultMatchResources((object as T).spec.matchResources),
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
  }
}
