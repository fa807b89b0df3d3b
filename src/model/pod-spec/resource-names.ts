/** Names of resources that can be requested, limited and counted, and what each stands for. */
import { parseQuantity, quantityMilliValue, quantitySign, quantityValue } from '#meta/quantity.ts'
import { asJson, type FieldError, invalid, notInSet } from '#meta/validation/field-error.ts'
import { qualifiedName } from '#meta/validation/names.ts'
import { complaining } from '#meta/validation/rules.ts'

const HUGE_PAGES = 'hugepages-'

const containerResources = new Set(['cpu', 'memory', 'ephemeral-storage'])

const countedObjects = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
]

const standardResources = new Set([
  ...containerResources,
  ...[...containerResources].flatMap((name) => [`requests.${name}`, `limits.${name}`]),
  ...countedObjects,
  'storage',
  'requests.storage',
])

export function isHugePages(name: string): boolean {
  return name.startsWith(HUGE_PAGES)
}

/** Without a prefix, or with one of Kubernetes' own. */
export function isNativeResource(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/')
}

/** A resource of somebody else, such as `nvidia.com/gpu`: whole numbers, no overcommitment. */
export function isExtendedResource(name: string): boolean {
  if (isNativeResource(name) || name.startsWith('requests.')) return false
  return qualifiedName(`requests.${name}`).length === 0
}

/** Whether more may be limited than is requested. */
export function isOvercommitAllowed(name: string): boolean {
  return isNativeResource(name) && !isHugePages(name)
}

/** Measured in whole numbers. */
export function isIntegerResource(name: string): boolean {
  return countedObjects.includes(name) || isExtendedResource(name)
}

/** Resources that a pod as a whole may request. */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || isHugePages(name)
}

/** Whether the amount is a whole number of pages of the size that the name tells. */
export function isWholePages(name: string, amount: string): boolean {
  try {
    const size = parseQuantity(name.slice(HUGE_PAGES.length))
    if (quantitySign(size) <= 0 || quantityMilliValue(size) % 1000 !== 0) return false
    return quantityValue(parseQuantity(amount)) % quantityValue(size) === 0
  } catch {
    // The name ends in no size.
    return false
  }
}

/** The name of any resource, as quotas and limits have them. */
export function validateResourceName(field: string, name: string): FieldError[] {
  const errors = complaining(field, asJson(name), qualifiedName(name))
  if (errors.length > 0 || name.includes('/') || standardResources.has(name)) return errors
  if (isHugePages(name) || name.startsWith(`requests.${HUGE_PAGES}`)) return errors
  return [invalid(field, asJson(name), 'must be a standard resource type or fully qualified')]
}

export function validateContainerResourceName(field: string, name: string): FieldError[] {
  const errors = validateResourceName(field, name)
  if (!name.includes('/')) {
    if (containerResources.has(name) || isHugePages(name)) return errors
    return [...errors, invalid(field, asJson(name), 'must be a standard resource for containers')]
  }
  if (isNativeResource(name) || isExtendedResource(name)) return errors
  return [...errors, invalid(field, asJson(name), "doesn't follow extended resource name standard")]
}

export function validatePodResourceName(field: string, name: string): FieldError[] {
  const errors = validateResourceName(field, name)
  if (errors.length > 0 || isPodLevelResource(name)) return errors
  return [notInSet(field, asJson(name), ['cpu', HUGE_PAGES, 'memory'])]
}
