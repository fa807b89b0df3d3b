/** Validates the match rules of webhooks and policies: operations, resources and conditions. */
import type { MatchCondition, Rule, RuleWithOperations } from '#apis/admissionregistration/v1.ts'
import { createRepetition } from '#lib/repetition.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { oneOfSet, validateQualifiedName } from '#meta/validation/rules.ts'
import { type AdmissionCompiler, createAdmissionCompiler } from '#model/expressions/admission.ts'
import { expressionErrors } from '#model/expressions/compile.ts'

import { isBlank } from '../expressions.ts'

const operations = ['*', 'CREATE', 'UPDATE', 'DELETE', 'CONNECT']
const scopes = ['Cluster', 'Namespaced', '*']

export const failurePolicies: readonly string[] = ['Ignore', 'Fail']
export const matchPolicies: readonly string[] = ['Exact', 'Equivalent']
export const reinvocationPolicies: readonly string[] = ['Never', 'IfNeeded']

export function defaultRule(rule: Rule): void {
  rule.scope ??= '*'
}

export function validateRuleWithOperations(path: FieldPath, rule: RuleWithOperations): FieldError[] {
  const field = path.child('operations')
  const list = rule.operations ?? []
  return [
    ...validateStars(field, list, 'operations'),
    ...field.each(list, (path, operation) => oneOfSet(path, operation, operations)),
    ...validateRule(path, rule),
  ]
}

/** Must not be empty; a star must be alone. */
function validateStars(path: FieldPath, values: readonly string[], others: string): FieldError[] {
  if (values.length === 0) return [path.required()]
  if (values.length === 1 || !values.includes('*')) return []
  return [path.invalid(values, `if '*' is present, must not specify other ${others}`)]
}

function validateRule(
  path: FieldPath,
  { apiGroups = [], apiVersions = [], resources = [], scope }: Rule,
): FieldError[] {
  const versions = path.child('apiVersions')
  return [
    ...validateStars(path.child('apiGroups'), apiGroups, 'API groups'),
    ...validateStars(versions, apiVersions, 'API versions'),
    ...versions.each(apiVersions, (path, version) => version === '' && path.required()),
    ...validateResources(path.child('resources'), resources),
    ...oneOfSet(path.child('scope'), scope, scopes),
  ]
}

/** `pods`, `pods/status`, with a star for either part; a name that a star covers must not be listed. */
function validateResources(path: FieldPath, resources: readonly string[]): FieldError[] {
  if (resources.length === 0) return [path.required()]
  const errors: FieldError[] = []
  const [anyPart, anyResource] = [new Set<string>(), new Set<string>()]
  for (const [at, text] of resources.entries()) {
    const itemPath = path.index(at)
    if (text === '') errors.push(itemPath.required())
    const slash = text.indexOf('/')
    if (slash < 0) continue
    const [resource, part] = [text.slice(0, slash), text.slice(slash + 1)]
    const covered = (by: string): FieldError =>
      itemPath.invalid(text, `if '${by}' is present, must not specify ${text}`)
    if (anyPart.has(resource)) errors.push(covered(`${resource}/*`))
    if (anyResource.has(part)) errors.push(covered(`*/${part}`))
    if (part === '*') anyPart.add(resource)
    if (resource === '*') anyResource.add(part)
  }
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(path.invalid(resources, "if '*/*' is present, must not specify other resources"))
  }
  // Upstream checks only the last resource without a subresource.
  const whole = resources.filter((text) => text !== '' && !text.includes('/'))
  if (whole.includes('*') && whole.at(-1) !== '*') {
    errors.push(path.invalid(resources, "if '*' is present, must not specify other resources without subresources"))
  }
  return errors
}

const MAX_CONDITIONS = 64

/** Match conditions are validated without the policy's variables, although they may use them at run time. */
const conditionCompilers = [false, true].map((hasParams) => createAdmissionCompiler({ hasParams, hasVariables: false }))

export function validateMatchConditions(
  path: FieldPath,
  conditions: readonly MatchCondition[] = [],
  hasParams = false,
): FieldError[] {
  const compiler = conditionCompilers[hasParams ? 1 : 0] as AdmissionCompiler
  const isRepeated = createRepetition()
  return collectErrors(
    conditions.length > MAX_CONDITIONS && path.tooMany(conditions.length, MAX_CONDITIONS),
    path.each(conditions, (path, { name, expression }) => {
      const repeated = isRepeated(name) && name !== ''
      return collectErrors(
        isBlank(expression)
          ? path.child('expression').required()
          : expressionErrors(path.child('expression'), compiler.compile(expression.trim(), 'match-condition')),
        name === '' ? path.child('name').required() : validateQualifiedName(path.child('name'), name),
        repeated && path.child('name').duplicate(name),
      )
    }),
  )
}
