/** The ValidatingAdmissionPolicy resource: validations of requests in CEL, activated by a binding. */
import {
  type AuditAnnotation,
  type ExpressionWarning,
  ValidatingAdmissionPolicies,
  type ValidatingAdmissionPolicy,
  type Validation,
} from '#apis/admissionregistration/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { type Condition, validateConditions } from '#meta/conditions.ts'
import { semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { oneOfSet, requiredOneOfSet, validateQualifiedName } from '#meta/validation/rules.ts'
import { type AdmissionPurpose, createAdmissionCompiler } from '#model/expressions/admission.ts'
import { expressionErrors } from '#model/expressions/compile.ts'

import { hasLineBreak, isBlank } from '../expressions.ts'
import { failurePolicies, validateMatchConditions } from './match-rules.ts'
import { guardParamKind, type ParamAccess } from './param-access.ts'
import {
  defaultMatchResources,
  paramKindText,
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
  return collectErrors(
    requiredOneOfSet(fieldPath('spec.failurePolicy'), spec.failurePolicy, failurePolicies),
    paramKind !== undefined && validateParamKind(fieldPath('spec.paramKind'), paramKind),
    validateMatchConstraints(fieldPath('spec.matchConstraints'), spec.matchConstraints),
    !sameConditions && validateMatchConditions(fieldPath('spec.matchConditions'), matchConditions, hasParams),
    validateVariables(fieldPath('spec.variables'), variables, compiler),
    validations.length + auditAnnotations.length === 0 && [
      fieldPath('spec.validations').required(EMPTY),
      fieldPath('spec.auditAnnotations').required(EMPTY),
    ],
    fieldPath('spec.validations').each(validations, (path, one) => validateValidation(path, one, check)),
    validateAuditAnnotations(metadata.name ?? '', auditAnnotations, check),
  )
}

type ExpressionCheck = (path: FieldPath, expression: string, purpose: AdmissionPurpose) => FieldError[]

const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge']

function validateValidation(path: FieldPath, validation: Validation, check: ExpressionCheck): FieldError[] {
  const { expression, message = '', messageExpression = '', reason } = validation
  const at = (name: string): FieldPath => path.child(name)
  const blankMessage = (name: string, value: string): FieldError[] =>
    value !== '' && isBlank(value) ? [at(name).invalid(value, 'must be non-empty if specified')] : []
  return collectErrors(
    isBlank(expression)
      ? at('expression').required('expression is not specified')
      : check(at('expression'), expression, 'validation'),
    blankMessage('messageExpression', messageExpression),
    !isBlank(messageExpression) && check(at('messageExpression'), messageExpression, 'message'),
    blankMessage('message', message),
    hasLineBreak(message.trim()) && at('message').invalid(message, 'must not contain line breaks'),
    oneOfSet(at('reason'), reason, reasons),
  )
}

const MAX_ANNOTATIONS = 20
const MAX_VALUE_BYTES = 5 * 1024

function validateAuditAnnotations(
  policy: string,
  annotations: readonly AuditAnnotation[],
  check: ExpressionCheck,
): FieldError[] {
  const field = fieldPath('spec.auditAnnotations')
  const isRepeated = createRepetition()
  return collectErrors(
    annotations.length > MAX_ANNOTATIONS &&
      field.invalid(annotations, `must not have more than ${MAX_ANNOTATIONS} auditAnnotations`),
    field.each(annotations, (path, { key, valueExpression }) =>
      collectErrors(
        policy === ''
          ? path.child('key').invalid(key, 'requires metadata.name be non-empty')
          : validateQualifiedName(path.child('key'), `${policy}/${key}`),
        validateValueExpression(path.child('valueExpression'), valueExpression, check),
        isRepeated(key) && path.child('key').duplicate(key),
      ),
    ),
  )
}

function validateValueExpression(path: FieldPath, expression: string, check: ExpressionCheck): FieldError[] {
  if (isBlank(expression)) return [path.required('valueExpression is not specified')]
  if (byteLength(expression.trim()) > MAX_VALUE_BYTES) {
    return [path.required(`must not exceed ${MAX_VALUE_BYTES} bytes in length`)]
  }
  return check(path, expression.trim(), 'audit-annotation')
}

function validateStatus({ status }: ValidatingAdmissionPolicy): FieldError[] {
  return [
    ...(status?.typeChecking?.expressionWarnings ?? []).flatMap(validateWarning),
    ...validateConditions(fieldPath('status.conditions'), status?.conditions as Condition[] | undefined),
  ]
}

/** The type checker writes these; `fieldRef` is not validated as a JSON path. */
function validateWarning({ fieldRef, warning }: ExpressionWarning, at: number): FieldError[] {
  const path = fieldPath('status.typeChecking.expressionWarnings').index(at)
  return collectErrors(
    warning === '' && path.child('warning').required(),
    isBlank(fieldRef) && path.child('fieldRef').required(),
  )
}

/** Without an authorizer, every user who may write policies may use any param kind. */
export function defineValidatingAdmissionPolicy(access: ParamAccess | undefined): Resource<ValidatingAdmissionPolicy> {
  return guardParamKind(validatingAdmissionPolicy, access)
}
