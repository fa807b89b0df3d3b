/** The ResourceQuota resource: limits of a namespace. The controller counts, admission rejects. */
import { type ResourceQuota, ResourceQuotas, type ResourceQuotaSpec } from '#apis/core/v1.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go/text.ts'
import { compareQuantities, parseQuantity } from '#meta/quantity.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
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
      ...validateQuotaAmounts(fieldPath('status.hard'), status?.hard),
      ...validateQuotaAmounts(fieldPath('status.used'), status?.used),
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
  return [
    ...validateQuotaAmounts(fieldPath('spec.hard'), spec.hard),
    ...validateScopes(spec),
    ...validateSelector(spec),
  ]
}

/** The counted resources that a scope does not support, in order. */
function misfits({ hard }: ResourceQuotaSpec, scope: string): string[] {
  const names = Object.keys(hard ?? {}).sort(compareText)
  return names.filter((name) => isStandardQuotaResource(name) && !scopeFits(scope, name))
}

function conflicts(scopes: readonly string[]): readonly unknown[] {
  return conflictingScopes.filter((pair) => pair.every((scope) => scopes.includes(scope)))
}

function validateScopes(spec: ResourceQuotaSpec): FieldError[] {
  const { scopes = [] } = spec
  const field = fieldPath('spec.scopes')
  return [
    ...scopes.flatMap((scope) =>
      collectErrors(
        !isQuotaScope(scope) && field.invalid(scopes, 'unsupported scope'),
        misfits(spec, scope).map(() => field.invalid(scopes, 'unsupported scope applied to resource')),
      ),
    ),
    ...conflicts(scopes).map(() => field.invalid(scopes, 'conflicting scopes')),
  ]
}

/** Scopes with the Exists operator only; priority classes and VolumeAttributesClasses have values. */
const valueless = ['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'CrossNamespacePodAffinity']

function validateSelector(spec: ResourceQuotaSpec): FieldError[] {
  const { scopeSelector, scopes = null } = spec
  if (scopeSelector === undefined) return []
  const field = fieldPath('spec.scopeSelector.matchExpressions')
  const expressions = scopeSelector.matchExpressions ?? []
  return [
    ...expressions.flatMap((expression) =>
      collectErrors(
        !isQuotaScope(expression.scopeName) &&
          field.child('scopeName').invalid(asJson(expression.scopeName), 'unsupported scope'),
        misfits(spec, expression.scopeName).map(() =>
          field.invalid(scopeSelector, 'unsupported scope applied to resource'),
        ),
        validateExpression(field, expression),
      ),
    ),
    ...conflicts(expressions.map(({ scopeName }) => scopeName)).map(() => field.invalid(scopes, 'conflicting scopes')),
  ]
}

interface Expression {
  readonly scopeName: string
  readonly operator: string
  readonly values?: readonly string[]
}

function validateExpression(path: FieldPath, { scopeName, operator, values = [] }: Expression): FieldError[] {
  const errors: FieldError[] = []
  if (valueless.includes(scopeName) && operator !== 'Exists') {
    const scopes =
      'ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity'
    errors.push(path.child('operator').invalid(asJson(operator), `must be 'Exists' when scope is any of ${scopes}`))
  }
  if (operator === 'In' || operator === 'NotIn') {
    const rule = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
    return values.length > 0 ? errors : [...errors, path.child('values').required(rule)]
  }
  if (operator === 'Exists' || operator === 'DoesNotExist') {
    const rule = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
    return values.length === 0 ? errors : [...errors, path.child('values').invalid(values, rule)]
  }
  return [...errors, path.child('operator').invalid(asJson(operator), 'not a valid selector operator')]
}

function validateSameScopes(next: ResourceQuota, old: ResourceQuota): FieldError[] {
  const now = new Set(next.spec?.scopes)
  const before = new Set(old.spec?.scopes)
  if (now.size === before.size && [...now].every((scope) => before.has(scope))) return []
  return [fieldPath('spec.scopes').invalid(next.spec?.scopes ?? null, 'field is immutable')]
}

/** The prefix `requests.` is optional for cpu and memory. */
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
