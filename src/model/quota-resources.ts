/** Lists the resources that a ResourceQuota can count, by scope. */
import { asJson, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'

import { isHugePages, validateResourceName } from './pod-spec/containers/resource-names.ts'
import { validateResourceQuantity } from './pod-spec/containers/resources.ts'
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

/** A standard quota resource; others are counted as `count/…` or by their domain. */
export function isStandardQuotaResource(name: string): boolean {
  return quotaNames.has(name) || isHugePages(name) || name.startsWith('requests.hugepages-')
}

const podNames = ['pods', 'cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory']

/** By scope, the standard resources that it supports. */
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

/** True if the scope can restrict the resource. Unknown scopes are rejected elsewhere and match everything here. */
export function scopeFits(scope: string, resource: string): boolean {
  return scopes.get(scope)?.has(resource) ?? true
}

/** Contradictory scopes. */
export const conflictingScopes: readonly (readonly [string, string])[] = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
]

export function validateQuotaResourceName(path: FieldPath, name: string): FieldError[] {
  const errors = validateResourceName(path, name)
  if (name.includes('/') || isStandardQuotaResource(name)) return errors
  return [...errors, path.invalid(asJson(name), 'must be a standard resource for quota')]
}

/** A list of hard or used amounts. */
export function validateQuotaAmounts(field: FieldPath, list: ResourceList | undefined): FieldError[] {
  return sortedAmounts(list).flatMap(([name, amount]) => {
    const path = field.key(name)
    return [...validateQuotaResourceName(path, name), ...validateResourceQuantity(path, name, amount)]
  })
}
