/** ResourceQuota: how much a namespace may use and have. Counting is the controller's, refusing is admission's. */
import { type ResourceQuota, ResourceQuotas, type ResourceQuotaSpec } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go-text.ts'
import { compareQuantities, parseQuantity } from '#meta/quantity.ts'
import { asJson, child, type FieldError, invalid, required } from '#meta/validation/field-error.ts'
import { roundAmounts } from '#model/pod-spec/defaults.ts'
import {
  conflictingScopes,
  isQuotaScope,
  isStandardQuotaResource,
  scopeFits,
  validateQuotaAmounts,
} from '#model/quota-resources.ts'
import { amountOf, sortedAmounts } from '#model/resource-lists.ts'

export const resourceQuota: Resource<ResourceQuota> = defineResource<ResourceQuota>({
  kind: ResourceQuotas,
  applyDefaults({ spec, status }) {
    for (const list of [spec?.hard, status?.hard, status?.used]) roundAmounts(list)
  },
  validate: ({ spec }) => validateSpec(spec),
  validateUpdate: (next, old) => [...validateSpec(next.spec), ...validateSameScopes(next, old)],
  warnings: (next, old) => (old === undefined ? requestWarnings(next.spec) : []),
  status: {
    keeps: ['spec'],
    validateUpdate: ({ status }) => [
      ...validateQuotaAmounts('status.hard', status?.hard),
      ...validateQuotaAmounts('status.used', status?.used),
    ],
  },
  columns: [
    nameColumn,
    { name: 'Request', value: (quota) => usageText(quota, (name) => !name.startsWith('limits.')) },
    { name: 'Limit', value: (quota) => usageText(quota, (name) => name.startsWith('limits.')) },
    ageColumn,
  ],
  deleteAnswersObject: true,
})

function validateSpec(spec: ResourceQuotaSpec | undefined): FieldError[] {
  if (spec === undefined) return []
  return [...validateQuotaAmounts('spec.hard', spec.hard), ...validateScopes(spec), ...validateSelector(spec)]
}

/** The counted resources that a scope does not fit, in order. */
function misfits({ hard }: ResourceQuotaSpec, scope: string): string[] {
  const names = Object.keys(hard ?? {}).sort(compareText)
  return names.filter((name) => isStandardQuotaResource(name) && !scopeFits(scope, name))
}

function conflicts(scopes: readonly string[]): readonly unknown[] {
  return conflictingScopes.filter((pair) => pair.every((scope) => scopes.includes(scope)))
}

function validateScopes(spec: ResourceQuotaSpec): FieldError[] {
  const { scopes = [] } = spec
  const field = 'spec.scopes'
  return [
    ...scopes.flatMap((scope) => [
      ...(isQuotaScope(scope) ? [] : [invalid(field, scopes, 'unsupported scope')]),
      ...misfits(spec, scope).map(() => invalid(field, scopes, 'unsupported scope applied to resource')),
    ]),
    ...conflicts(scopes).map(() => invalid(field, scopes, 'conflicting scopes')),
  ]
}

/** Scopes that are there or not; only a priority class or a class of attributes has values to choose from. */
const valueless = ['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'CrossNamespacePodAffinity']

function validateSelector(spec: ResourceQuotaSpec): FieldError[] {
  const { scopeSelector, scopes = null } = spec
  if (scopeSelector === undefined) return []
  const field = 'spec.scopeSelector.matchExpressions'
  const expressions = scopeSelector.matchExpressions ?? []
  return [
    ...expressions.flatMap((expression) => [
      ...(isQuotaScope(expression.scopeName)
        ? []
        : [invalid(child(field, 'scopeName'), asJson(expression.scopeName), 'unsupported scope')]),
      ...misfits(spec, expression.scopeName).map(() =>
        invalid(field, scopeSelector, 'unsupported scope applied to resource'),
      ),
      ...validateExpression(field, expression),
    ]),
    ...conflicts(expressions.map(({ scopeName }) => scopeName)).map(() => invalid(field, scopes, 'conflicting scopes')),
  ]
}

interface Expression {
  readonly scopeName: string
  readonly operator: string
  readonly values?: readonly string[]
}

function validateExpression(field: string, { scopeName, operator, values = [] }: Expression): FieldError[] {
  const errors: FieldError[] = []
  if (valueless.includes(scopeName) && operator !== 'Exists') {
    const scopes =
      'ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity'
    errors.push(invalid(child(field, 'operator'), asJson(operator), `must be 'Exists' when scope is any of ${scopes}`))
  }
  if (operator === 'In' || operator === 'NotIn') {
    const rule = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
    return values.length > 0 ? errors : [...errors, required(child(field, 'values'), rule)]
  }
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    const rule = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
    return values.length === 0 ? errors : [...errors, invalid(child(field, 'values'), values, rule)]
  }
  return [...errors, invalid(child(field, 'operator'), asJson(operator), 'not a valid selector operator')]
}

function validateSameScopes(next: ResourceQuota, old: ResourceQuota): FieldError[] {
  const now = new Set(next.spec?.scopes)
  const before = new Set(old.spec?.scopes)
  if (now.size === before.size && [...now].every((scope) => before.has(scope))) return []
  return [invalid('spec.scopes', next.spec?.scopes ?? null, 'field is immutable')]
}

/** Requests may be written without their prefix, for the two that pods have always had. */
function requestWarnings({ hard }: ResourceQuotaSpec): string[] {
  return ['cpu', 'memory', 'storage', 'ephemeral-storage'].flatMap((name) => {
    const bare = name === 'cpu' || name === 'memory' ? [name] : []
    const request = [`requests.${name}`, ...bare].find((candidate) => amountOf(hard, candidate) !== undefined)
    const requested = request === undefined ? undefined : amountOf(hard, request)
    const limit = amountOf(hard, `limits.${name}`)
    if (requested === undefined || limit === undefined) return []
    if (compareQuantities(parseQuantity(requested), parseQuantity(limit)) <= 0) return []
    return [`ResourceQuota ${request} (${requested}) should be less than limits.${name} (${limit})`]
  })
}

function usageText({ status }: ResourceQuota, wanted: (name: string) => boolean): string {
  return sortedAmounts(status?.hard)
    .filter(([name]) => wanted(name))
    .map(([name, hard]) => `${name}: ${amountOf(status.used, name) ?? '0'}/${hard}`)
    .join(', ')
}
