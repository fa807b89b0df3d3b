/** Which requests a webhook or policy is asked about: rules of operations and resources, and conditions. */
import type { MatchCondition, Rule, RuleWithOperations } from '#apis/admissionregistration/v1.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  index,
  invalid,
  notInSet,
  required,
  tooMany,
} from '#meta/validation/field-error.ts'
import { type AdmissionCompiler, createAdmissionCompiler } from '#model/expressions/admission.ts'
import { expressionErrors } from '#model/expressions/compile.ts'
import { validateQualifiedName } from '#model/pod-spec/checks.ts'

import { isBlank } from '../expressions.ts'

const operations = ['*', 'CREATE', 'UPDATE', 'DELETE', 'CONNECT']
const scopes = ['Cluster', 'Namespaced', '*']

export const failurePolicies: readonly string[] = ['Ignore', 'Fail']
export const matchPolicies: readonly string[] = ['Exact', 'Equivalent']
export const reinvocationPolicies: readonly string[] = ['Never', 'IfNeeded']

/** For fields whose values upstream lists sorted; absent is fine. */
export function oneOfSet(field: string, value: string | undefined, supported: readonly string[]): FieldError[] {
  return value === undefined || supported.includes(value) ? [] : [notInSet(field, asJson(value), supported)]
}

export function defaultRule(rule: Rule): void {
  rule.scope ??= '*'
}

export function validateRuleWithOperations(path: string, rule: RuleWithOperations): FieldError[] {
  const field = child(path, 'operations')
  const list = rule.operations ?? []
  return [
    ...validateStars(field, list, 'operations'),
    ...list.flatMap((operation, at) => oneOfSet(index(field, at), operation, operations)),
    ...validateRule(path, rule),
  ]
}

/** Must hold something; a star must be alone. */
function validateStars(field: string, values: readonly string[], others: string): FieldError[] {
  if (values.length === 0) return [required(field)]
  if (values.length === 1 || !values.includes('*')) return []
  return [invalid(field, values, `if '*' is present, must not specify other ${others}`)]
}

function validateRule(path: string, { apiGroups = [], apiVersions = [], resources = [], scope }: Rule): FieldError[] {
  const versions = child(path, 'apiVersions')
  return [
    ...validateStars(child(path, 'apiGroups'), apiGroups, 'API groups'),
    ...validateStars(versions, apiVersions, 'API versions'),
    ...apiVersions.flatMap((version, at) => (version === '' ? [required(index(versions, at))] : [])),
    ...validateResources(child(path, 'resources'), resources),
    ...oneOfSet(child(path, 'scope'), scope, scopes),
  ]
}

/** `pods`, `pods/status`, with a star for either part; what a star covers must not be named besides. */
function validateResources(field: string, resources: readonly string[]): FieldError[] {
  if (resources.length === 0) return [required(field)]
  const errors: FieldError[] = []
  const [anyPart, anyResource] = [new Set<string>(), new Set<string>()]
  for (const [at, text] of resources.entries()) {
    const place = index(field, at)
    if (text === '') errors.push(required(place))
    const slash = text.indexOf('/')
    if (slash < 0) continue
    const [resource, part] = [text.slice(0, slash), text.slice(slash + 1)]
    const covered = (by: string): FieldError => invalid(place, text, `if '${by}' is present, must not specify ${text}`)
    if (anyPart.has(resource)) errors.push(covered(`${resource}/*`))
    if (anyResource.has(part)) errors.push(covered(`*/${part}`))
    if (part === '*') anyPart.add(resource)
    if (resource === '*') anyResource.add(part)
  }
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(invalid(field, resources, "if '*/*' is present, must not specify other resources"))
  }
  // Upstream looks at the last resource without a part only.
  const whole = resources.filter((text) => text !== '' && !text.includes('/'))
  if (whole.includes('*') && whole.at(-1) !== '*') {
    errors.push(invalid(field, resources, "if '*' is present, must not specify other resources without subresources"))
  }
  return errors
}

const MAX_CONDITIONS = 64

/** Conditions of policies are judged without the variables of the policy, although they may use them when they run. */
const conditionCompilers = [false, true].map((hasParams) => createAdmissionCompiler({ hasParams, hasVariables: false }))

export function validateMatchConditions(
  field: string,
  conditions: readonly MatchCondition[] = [],
  hasParams = false,
): FieldError[] {
  const compiler = conditionCompilers[hasParams ? 1 : 0] as AdmissionCompiler
  const seen = new Set<string>()
  return [
    ...(conditions.length > MAX_CONDITIONS ? [tooMany(field, conditions.length, MAX_CONDITIONS)] : []),
    ...conditions.flatMap(({ name, expression }, at) => {
      const path = index(field, at)
      const repeated = name !== '' && seen.has(name)
      seen.add(name)
      return [
        ...(isBlank(expression)
          ? [required(child(path, 'expression'))]
          : expressionErrors(child(path, 'expression'), compiler.compile(expression.trim(), 'match-condition'))),
        ...(name === '' ? [required(child(path, 'name'))] : validateQualifiedName(child(path, 'name'), name)),
        ...(repeated ? [duplicate(child(path, 'name'), name)] : []),
      ]
    }),
  ]
}
