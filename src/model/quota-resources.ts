/** What a ResourceQuota can count, and which of it within which scope. */
import { asJson, type FieldError, invalid } from '#meta/validation/field-error.ts'

import { isHugePages, validateResourceName } from './pod-spec/resource-names.ts'
import { validateResourceQuantity } from './pod-spec/resources.ts'
import { type ResourceList, sortedAmounts } from './resource-lists.ts'

const computeNames = ['cpu', 'memory', 'ephemeral-storage']

const quotaNames: ReadonlySet<string> = new Set([
  ...computeNames,
  ...computeNames.flatMap((name) => [`requests.${name}`, `limits.${name}`]),
  'requests.storage',
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'persistentvolumeclaims',
  'configmaps',
  'services.nodeports',
  'services.loadbalancers',
])

/** A resource that quotas know by themselves; others are counted as `count/…` or by their domain. */
export function isStandardQuotaResource(name: string): boolean {
  return quotaNames.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-')
}

const podNames = ['pods', 'cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory']

/** By scope, the standard resources it can be applied to. */
const scopes: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['Terminating', new Set(podNames)],
  ['NotTerminating', new Set(podNames)],
  ['BestEffort', new Set(['pods'])],
  ['NotBestEffort', new Set(podNames)],
  ['PriorityClass', new Set(podNames)],
  ['CrossNamespacePodAffinity', new Set(podNames)],
  ['VolumeAttributesClass', new Set(['persistentvolumeclaims', 'requests.storage'])],
])

export function isQuotaScope(scope: string): boolean {
  return scopes.has(scope)
}

/** Whether the scope can narrow down that resource. An unknown scope is refused elsewhere and fits everything here. */
export function scopeFits(scope: string, resource: string): boolean {
  return scopes.get(scope)?.has(resource) ?? true
}

/** Scopes that say the opposite of each other. */
export const conflictingScopes: readonly (readonly [string, string])[] = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
]

export function validateQuotaResourceName(field: string, name: string): FieldError[] {
  const errors = validateResourceName(field, name)
  if (name.includes('/') || isStandardQuotaResource(name)) return errors
  return [...errors, invalid(field, asJson(name), 'must be a standard resource for quota')]
}

/** A list of what may be or is used. */
export function validateQuotaAmounts(field: string, list: ResourceList | undefined): FieldError[] {
  return sortedAmounts(list).flatMap(([name, amount]) => {
    const path = `${field}[${name}]`
    return [...validateQuotaResourceName(path, name), ...validateResourceQuantity(path, name, amount)]
  })
}
