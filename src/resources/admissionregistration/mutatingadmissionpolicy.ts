/** The MutatingAdmissionPolicy resource: mutations of requests in CEL, activated by a binding. */
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
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { oneOfSet, requiredOneOfSet } from '#meta/validation/rules.ts'
import { type AdmissionCompiler, createAdmissionCompiler } from '#model/expressions/admission.ts'
import { expressionErrors } from '#model/expressions/compile.ts'

import { isBlank } from '../expressions.ts'
import { failurePolicies, reinvocationPolicies, validateMatchConditions } from './match-rules.ts'
import { guardParamKind, type ParamAccess } from './param-access.ts'
import {
  defaultMatchResources,
  paramKindText,
  validateMatchConstraints,
  validateMutatingOperations,
  validateParamKind,
  validateVariables,
} from './policies.ts'
import { staticNameWarnings, validateStaticName } from './static-name.ts'

export const mutatingAdmissionPolicy: Resource<MutatingAdmissionPolicy> = defineResource<MutatingAdmissionPolicy>({
  // Upstream still stores the previous version.
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

/** Equal in all versions. */
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
  return collectErrors(
    requiredOneOfSet(fieldPath('spec.failurePolicy'), spec.failurePolicy, failurePolicies),
    paramKind !== undefined && validateParamKind(fieldPath('spec.paramKind'), paramKind),
    validateMatchConstraints(fieldPath('spec.matchConstraints'), matchConstraints),
    validateMutatingOperations(fieldPath('spec.matchConstraints'), matchConstraints),
    !sameConditions && validateMatchConditions(fieldPath('spec.matchConditions'), matchConditions, hasParams),
    validateVariables(fieldPath('spec.variables'), variables, compiler),
    mutations.length === 0 && fieldPath('spec.mutations').required('mutations must contain at least one item'),
    fieldPath('spec.mutations').each(mutations, (path, one) => validateMutation(path, one, compiler)),
    reinvocationPolicy === ''
      ? fieldPath('spec.reinvocationPolicy').required()
      : oneOfSet(fieldPath('spec.reinvocationPolicy'), reinvocationPolicy, reinvocationPolicies),
  )
}

/** For each patch type: its field, and the purpose of its expression. */
const patches = [
  { type: 'ApplyConfiguration', field: 'applyConfiguration', purpose: 'apply-configuration' },
  { type: 'JSONPatch', field: 'jsonPatch', purpose: 'json-patch' },
] as const

function validateMutation(path: FieldPath, mutation: Mutation, compiler: AdmissionCompiler): FieldError[] {
  const { patchType } = mutation
  if (patchType === '') return [path.child('patchType').required()]
  const patch = patches.find(({ type }) => type === patchType)
  if (patch === undefined) {
    const types = patches.map(({ type }) => type)
    return [path.child('patchType').notInSet(asJson(patchType), types)]
  }
  const field = path.child(patch.field)
  const own = mutation[patch.field]
  const { expression = '' } = own ?? {}
  const others = patches.filter((one) => one !== patch && mutation[one.field] !== undefined)
  const checked = isBlank(expression)
    ? [field.child('expression').required()]
    : expressionErrors(field.child('expression'), compiler.compile(expression.trim(), patch.purpose))
  return [
    ...(own === undefined ? [field.required(`must be specified when patchType is ${patchType}`)] : checked),
    ...others.map((one) =>
      path.child(one.field).invalid(`{${one.field}}`, `must not be specified when patchType is ${patchType}`),
    ),
  ]
}

/** Without an authorizer, every user who may write policies may use any param kind. */
export function defineMutatingAdmissionPolicy(access: ParamAccess | undefined): Resource<MutatingAdmissionPolicy> {
  return guardParamKind(mutatingAdmissionPolicy, access)
}
