/** MutatingAdmissionPolicy: changes to requests, in CEL, where a binding puts them to use. */
import {
  MutatingAdmissionPolicies,
  type MutatingAdmissionPolicy,
  type Mutation,
} from '#apis/admissionregistration/v1.ts'
import { MutatingAdmissionPolicies as AlphaPolicies } from '#apis/admissionregistration/v1alpha1.ts'
import { MutatingAdmissionPolicies as BetaPolicies } from '#apis/admissionregistration/v1beta1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { type KubeObject, semanticEqual } from '#meta/object.ts'
import { asJson, child, type FieldError, index, invalid, notInSet, required } from '#meta/validation/field-error.ts'
import { type AdmissionCompiler, createAdmissionCompiler } from '#model/expressions/admission.ts'
import { expressionErrors } from '#model/expressions/compile.ts'

import { isBlank } from '../expressions.ts'
import { failurePolicies, oneOfSet, reinvocationPolicies, validateMatchConditions } from './match-rules.ts'
import { guardParamKind, type ParamAccess } from './param-access.ts'
import {
  defaultMatchResources,
  paramKindText,
  requiredOneOfSet,
  validateMatchConstraints,
  validateMutatingOperations,
  validateParamKind,
  validateVariables,
} from './policies.ts'
import { staticNameWarnings, validateStaticName } from './static-name.ts'

export const mutatingAdmissionPolicy: Resource<MutatingAdmissionPolicy> = defineResource<MutatingAdmissionPolicy>({
  // Upstream still stores the version before.
  kind: BetaPolicies,
  metadataRules: { update: ['whole'], plainFinalizers: true },
  otherVersions: [MutatingAdmissionPolicies, AlphaPolicies].map((kind) => ({
    kind,
    applyDefaults: applyPolicyDefaults,
  })),
  generation: 'spec',
  applyDefaults: applyPolicyDefaults,
  validate: (object, context) => [...validatePolicy(object), ...validateStaticName(object, context)],
  validateUpdate: validatePolicy,
  warnings: staticNameWarnings,
  columns: [
    nameColumn,
    { name: 'Mutations', type: 'integer', value: ({ spec }) => (spec.mutations ?? []).length },
    { name: 'ParamKind', value: ({ spec }) => paramKindText(spec.paramKind) },
    ageColumn,
  ],
  putNeedsVersion: true,
})

/** The same in all versions. */
function applyPolicyDefaults(object: KubeObject): void {
  const { spec } = object as MutatingAdmissionPolicy
  spec.failurePolicy ??= 'Fail'
  defaultMatchResources(spec.matchConstraints)
}

function validatePolicy({ spec }: MutatingAdmissionPolicy, old?: MutatingAdmissionPolicy): FieldError[] {
  const { paramKind, matchConstraints, matchConditions, variables = [], mutations = [] } = spec
  const { reinvocationPolicy = '' } = spec
  const hasParams = paramKind !== undefined
  const sameConditions =
    old !== undefined &&
    semanticEqual(paramKind, old.spec.paramKind) &&
    semanticEqual(matchConditions, old.spec.matchConditions)
  const compiler = createAdmissionCompiler({ hasParams, hasVariables: true })
  return [
    ...requiredOneOfSet('spec.failurePolicy', spec.failurePolicy, failurePolicies),
    ...(paramKind === undefined ? [] : validateParamKind('spec.paramKind', paramKind)),
    ...validateMatchConstraints('spec.matchConstraints', matchConstraints),
    ...validateMutatingOperations('spec.matchConstraints', matchConstraints),
    ...(sameConditions ? [] : validateMatchConditions('spec.matchConditions', matchConditions, hasParams)),
    ...validateVariables('spec.variables', variables, compiler),
    ...(mutations.length === 0 ? [required('spec.mutations', 'mutations must contain at least one item')] : []),
    ...mutations.flatMap((one, at) => validateMutation(index('spec.mutations', at), one, compiler)),
    ...(reinvocationPolicy === ''
      ? [required('spec.reinvocationPolicy')]
      : oneOfSet('spec.reinvocationPolicy', reinvocationPolicy, reinvocationPolicies)),
  ]
}

/** Of each type of patch: the field that holds it, and what its expression is for. */
const patches = [
  { type: 'ApplyConfiguration', field: 'applyConfiguration', purpose: 'apply-configuration' },
  { type: 'JSONPatch', field: 'jsonPatch', purpose: 'json-patch' },
] as const

function validateMutation(path: string, mutation: Mutation, compiler: AdmissionCompiler): FieldError[] {
  const { patchType } = mutation
  if (patchType === '') return [required(child(path, 'patchType'))]
  const patch = patches.find(({ type }) => type === patchType)
  if (patch === undefined) {
    const types = patches.map(({ type }) => type)
    return [notInSet(child(path, 'patchType'), asJson(patchType), types)]
  }
  const field = child(path, patch.field)
  const own = mutation[patch.field]
  const { expression = '' } = own ?? {}
  const others = patches.filter((one) => one !== patch && mutation[one.field] !== undefined)
  const checked = isBlank(expression)
    ? [required(child(field, 'expression'))]
    : expressionErrors(child(field, 'expression'), compiler.compile(expression.trim(), patch.purpose))
  return [
    ...(own === undefined ? [required(field, `must be specified when patchType is ${patchType}`)] : checked),
    ...others.map((one) =>
      invalid(child(path, one.field), `{${one.field}}`, `must not be specified when patchType is ${patchType}`),
    ),
  ]
}

/** Without somebody to ask, whoever may write policies may name every kind of parameters. */
export function defineMutatingAdmissionPolicy(access: ParamAccess | undefined): Resource<MutatingAdmissionPolicy> {
  return guardParamKind(mutatingAdmissionPolicy, access)
}
