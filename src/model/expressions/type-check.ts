/**
 * What the expressions of a validating policy get wrong about the kinds that it is about: warnings for its status, which
 * upstream's controller manager writes. They change nothing about what the policy does. Pure: who calls it knows the kinds
 * and their types.
 */
import type { ExpressionWarning, ValidatingAdmissionPolicySpec } from '#apis/admissionregistration/v1.ts'
import type { CelType } from '#cel/type.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import { type AdmissionCompiler, createAdmissionCompiler } from './admission.ts'

export interface CheckedKind {
  readonly kind: GroupVersionKind
  readonly type: CelType
}

/** `kinds` in the order of group, version and kind, at most ten; `params` when the type of the parameters is known. */
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
