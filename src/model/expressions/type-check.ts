/**
 * Type-checks a validating policy against the kinds that it matches, and returns the warnings for the policy's status.
 * Pure: the caller provides kinds and types.
 */
import type { ExpressionWarning, ValidatingAdmissionPolicySpec } from '#apis/admissionregistration/v1.ts'
import type { CelType } from '#cel/type.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import { type AdmissionCompiler, createAdmissionCompiler } from './admission.ts'

export interface CheckedKind {
  readonly kind: GroupVersionKind
  readonly type: CelType
}

/** `kinds` sorted by group, version and kind, at most ten; `params` if the type of the parameters is known. */
export function typeCheckPolicy(
  { paramKind, variables = [], validations = [] }: ValidatingAdmissionPolicySpec,
  kinds: readonly CheckedKind[],
  params?: CelType,
): ExpressionWarning[] {
  const checks = kinds.map(({ kind, type }) => {
    const compiler = createAdmissionCompiler({
      hasParams: paramKind !== undefined,
      hasVariables: true,
      types: { object: type, params },
    })
    for (const { name, expression } of variables) compiler.declareVariable(name, expression)
    return { kind, compiler }
  })
  const warn = (fieldRef: string, expression: string): ExpressionWarning[] => {
    const texts = checks.flatMap(({ kind, compiler }) => warningOf(kind, compiler, expression))
    return texts.length === 0 ? [] : [{ fieldRef, warning: texts.join('\n') }]
  }
  return validations.flatMap(({ expression, messageExpression = '' }, at) => [
    ...warn(`spec.validations[${at}].expression`, expression),
    ...(messageExpression === '' ? [] : warn(`spec.validations[${at}].messageExpression`, messageExpression)),
  ])
}

function warningOf({ group, version, kind }: GroupVersionKind, compiler: AdmissionCompiler, source: string): string[] {
  const { fault } = compiler.compile(source, 'variable')
  if (fault?.kind !== 'invalid') return []
  return [`${group}/${version}, Kind=${kind}: ${fault.detail.replace(/^compilation failed: /, '')}\n`]
}
