/** ValidatingAdmissionPolicy: conditions in CEL that requests must meet, where a binding puts them to use. */
import {
  type AuditAnnotation,
  type ExpressionWarning,
  ValidatingAdmissionPolicies,
  type ValidatingAdmissionPolicy,
  type Validation,
} from '#apis/admissionregistration/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go-text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { type Condition, validateConditions } from '#meta/conditions.ts'
import { semanticEqual } from '#meta/object.ts'
import { child, duplicate, type FieldError, index, invalid, required } from '#meta/validation/field-error.ts'
import { type AdmissionPurpose, createAdmissionCompiler } from '#model/expressions/admission.ts'
import { expressionErrors } from '#model/expressions/compile.ts'
import { validateQualifiedName } from '#model/pod-spec/checks.ts'

import { hasLineBreak, isBlank } from '../expressions.ts'
import { failurePolicies, oneOfSet, validateMatchConditions } from './match-rules.ts'
import { guardParamKind, type ParamAccess } from './param-access.ts'
import {
  defaultMatchResources,
  paramKindText,
  requiredOneOfSet,
  validateMatchConstraints,
  validateParamKind,
  validateVariables,
} from './policies.ts'
import { staticNameWarnings, validateStaticName } from './static-name.ts'

export const validatingAdmissionPolicy: Resource<ValidatingAdmissionPolicy> = defineResource<ValidatingAdmissionPolicy>(
  {
    kind: ValidatingAdmissionPolicies,
    metadataRules: { update: ['whole'], plainFinalizers: true, part: [] },
    generation: 'spec',
    applyDefaults({ spec }) {
      spec.failurePolicy ??= 'Fail'
      defaultMatchResources(spec.matchConstraints)
    },
    validate: (object, context) => [...validatePolicy(object), ...validateStaticName(object, context)],
    validateUpdate: validatePolicy,
    warnings: staticNameWarnings,
    status: { validateUpdate: validateStatus },
    columns: [
      nameColumn,
      { name: 'Validations', type: 'integer', value: ({ spec }) => (spec.validations ?? []).length },
      { name: 'ParamKind', value: ({ spec }) => paramKindText(spec.paramKind) },
      ageColumn,
    ],
    putNeedsVersion: true,
  },
)

const EMPTY = 'validations or auditAnnotations must contain at least one item'

function validatePolicy({ metadata, spec }: ValidatingAdmissionPolicy, old?: ValidatingAdmissionPolicy): FieldError[] {
  const { paramKind, matchConditions, variables = [], validations = [], auditAnnotations = [] } = spec
  const hasParams = paramKind !== undefined
  const sameConditions =
    old !== undefined &&
    semanticEqual(paramKind, old.spec.paramKind) &&
    semanticEqual(matchConditions, old.spec.matchConditions)
  const compiler = createAdmissionCompiler({ hasParams, hasVariables: variables.length > 0 })
  const check: ExpressionCheck = (field, expression, purpose) =>
    expressionErrors(field, compiler.compile(expression, purpose))
  return [
    ...requiredOneOfSet('spec.failurePolicy', spec.failurePolicy, failurePolicies),
    ...(paramKind === undefined ? [] : validateParamKind('spec.paramKind', paramKind)),
    ...validateMatchConstraints('spec.matchConstraints', spec.matchConstraints),
    ...(sameConditions ? [] : validateMatchConditions('spec.matchConditions', matchConditions, hasParams)),
    ...validateVariables('spec.variables', variables, compiler),
    ...(validations.length + auditAnnotations.length === 0
      ? [required('spec.validations', EMPTY), required('spec.auditAnnotations', EMPTY)]
      : []),
    ...validations.flatMap((one, at) => validateValidation(index('spec.validations', at), one, check)),
    ...validateAuditAnnotations(metadata.name ?? '', auditAnnotations, check),
  ]
}

type ExpressionCheck = (field: string, expression: string, purpose: AdmissionPurpose) => FieldError[]

const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge']

function validateValidation(path: string, validation: Validation, check: ExpressionCheck): FieldError[] {
  const { expression, message = '', messageExpression = '', reason } = validation
  const at = (name: string): string => child(path, name)
  const blankMessage = (name: string, value: string): FieldError[] =>
    value !== '' && isBlank(value) ? [invalid(at(name), value, 'must be non-empty if specified')] : []
  return [
    ...(isBlank(expression)
      ? [required(at('expression'), 'expression is not specified')]
      : check(at('expression'), expression, 'validation')),
    ...blankMessage('messageExpression', messageExpression),
    ...(isBlank(messageExpression) ? [] : check(at('messageExpression'), messageExpression, 'message')),
    ...blankMessage('message', message),
    ...(hasLineBreak(message.trim()) ? [invalid(at('message'), message, 'must not contain line breaks')] : []),
    ...oneOfSet(at('reason'), reason, reasons),
  ]
}

const MAX_ANNOTATIONS = 20
const MAX_VALUE_BYTES = 5 * 1024

function validateAuditAnnotations(
  policy: string,
  annotations: readonly AuditAnnotation[],
  check: ExpressionCheck,
): FieldError[] {
  const field = 'spec.auditAnnotations'
  const isRepeated = createRepetition()
  return [
    ...(annotations.length > MAX_ANNOTATIONS
      ? [invalid(field, annotations, `must not have more than ${MAX_ANNOTATIONS} auditAnnotations`)]
      : []),
    ...annotations.flatMap(({ key, valueExpression }, at) => {
      const path = index(field, at)
      return [
        ...(policy === ''
          ? [invalid(child(path, 'key'), key, 'requires metadata.name be non-empty')]
          : validateQualifiedName(child(path, 'key'), `${policy}/${key}`)),
        ...validateValueExpression(child(path, 'valueExpression'), valueExpression, check),
        ...(isRepeated(key) ? [duplicate(child(path, 'key'), key)] : []),
      ]
    }),
  ]
}

function validateValueExpression(field: string, expression: string, check: ExpressionCheck): FieldError[] {
  if (isBlank(expression)) return [required(field, 'valueExpression is not specified')]
  if (byteLength(expression.trim()) > MAX_VALUE_BYTES) {
    return [required(field, `must not exceed ${MAX_VALUE_BYTES} bytes in length`)]
  }
  return check(field, expression.trim(), 'audit-annotation')
}

function validateStatus({ status }: ValidatingAdmissionPolicy): FieldError[] {
  return [
    ...(status?.typeChecking?.expressionWarnings ?? []).flatMap(validateWarning),
    ...validateConditions('status.conditions', status?.conditions as Condition[] | undefined),
  ]
}

/** The type checker writes them; that `fieldRef` is a JSON path is not checked. */
function validateWarning({ fieldRef, warning }: ExpressionWarning, at: number): FieldError[] {
  const path = index('status.typeChecking.expressionWarnings', at)
  return [
    ...(warning === '' ? [required(child(path, 'warning'))] : []),
    ...(isBlank(fieldRef) ? [required(child(path, 'fieldRef'))] : []),
  ]
}

/** Without somebody to ask, whoever may write policies may name every kind of parameters. */
export function defineValidatingAdmissionPolicy(access: ParamAccess | undefined): Resource<ValidatingAdmissionPolicy> {
  return guardParamKind(validatingAdmissionPolicy, access)
}
