/** Compiles policies. A compilation error does not throw: each evaluation of the policy reports it. */
import type {
  MutatingAdmissionPolicySpec,
  ValidatingAdmissionPolicySpec,
  Variable,
} from '#apis/admissionregistration/v1.ts'
import type { Composition } from '#model/expressions/activation.ts'
import { type AdmissionCompiler, createAdmissionCompiler } from '#model/expressions/admission.ts'
import type { CompiledExpression, UnfitExpression } from '#model/expressions/compile.ts'

import type { CompiledCondition } from '../matching/conditions.ts'

type Expression = CompiledExpression | UnfitExpression

/** The common members of both kinds of policies. */
export interface CompiledPolicy {
  readonly composition: Composition
  readonly conditions: readonly CompiledCondition[]
}

export interface CompiledValidation {
  readonly expression: Expression
  readonly messageExpression: Expression | undefined
  readonly message: string
  readonly reason: string
}

export interface CompiledAnnotation {
  readonly key: string
  readonly expression: Expression
}

export interface CompiledValidatingPolicy extends CompiledPolicy {
  readonly validations: readonly CompiledValidation[]
  readonly annotations: readonly CompiledAnnotation[]
}

export interface CompiledMutation {
  readonly type: 'apply-configuration' | 'json-patch'
  readonly expression: Expression
}

export interface CompiledMutatingPolicy extends CompiledPolicy {
  readonly mutations: readonly CompiledMutation[]
}

export function compileValidatingPolicy(spec: ValidatingAdmissionPolicySpec): CompiledValidatingPolicy {
  const { shared, compiler } = compileShared(spec)
  const { validations = [], auditAnnotations = [] } = spec
  return {
    ...shared,
    validations: validations.map(({ expression, messageExpression = '', message = '', reason = 'Invalid' }) => ({
      expression: compiler.compile(expression, 'validation'),
      messageExpression: messageExpression === '' ? undefined : compiler.compile(messageExpression, 'message'),
      message,
      reason,
    })),
    annotations: auditAnnotations.map(({ key, valueExpression }) => ({
      key,
      expression: compiler.compile(valueExpression, 'audit-annotation'),
    })),
  }
}

export function compileMutatingPolicy(spec: MutatingAdmissionPolicySpec): CompiledMutatingPolicy {
  const { shared, compiler } = compileShared(spec)
  const mutations = (spec.mutations ?? []).map(({ patchType, applyConfiguration, jsonPatch }): CompiledMutation => {
    const type = patchType === 'JSONPatch' ? 'json-patch' : 'apply-configuration'
    const { expression = '' } = (type === 'json-patch' ? jsonPatch : applyConfiguration) ?? {}
    return { type, expression: compiler.compile(expression, type) }
  })
  return { ...shared, mutations }
}

type SharedSpec = Pick<ValidatingAdmissionPolicySpec, 'paramKind' | 'matchConditions'> & {
  readonly variables?: readonly Variable[]
}

function compileShared({ paramKind, variables = [], matchConditions = [] }: SharedSpec): {
  readonly shared: CompiledPolicy
  readonly compiler: AdmissionCompiler
} {
  const compiler = createAdmissionCompiler({ hasParams: paramKind !== undefined, hasVariables: true })
  const composition = new Map(
    variables.map(({ name, expression }) => [name, compiler.declareVariable(name, expression)] as const),
  )
  const conditions = matchConditions.map(({ name, expression }) => ({
    name,
    expression: compiler.compile(expression, 'match-condition'),
  }))
  return { shared: { composition, conditions }, compiler }
}
