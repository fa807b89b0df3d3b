/** Classifies names of resources: which ones can be requested, limited or counted. */
import { parseQuantity, quantityMilliValue, quantitySign, quantityValue } from '#meta/quantity.ts'
import { asJson, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { qualifiedName } from '#meta/validation/names.ts'

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

/** Without a prefix, or with one of Kubernetes' prefixes. */
export function isNativeResource(name: string): boolean {
  return !name.includes('/') || name.includes('kubernetes.io/')
}

/** An extended resource, such as `nvidia.com/gpu`: integers, no overcommitment. */
export function isExtendedResource(name: string): boolean {
  if (isNativeResource(name) || name.startsWith('requests.')) return false
  return qualifiedName(`requests.${name}`).length === 0
}

/** True if limits may exceed requests. */
export function isOvercommitAllowed(name: string): boolean {
  return isNativeResource(name) && !isHugePages(name)
}

/** Measured in integers. */
export function isIntegerResource(name: string): boolean {
  return countedObjects.includes(name) || isExtendedResource(name)
}

/** Resources that pod-level requests may contain. */
export function isPodLevelResource(name: string): boolean {
  return name === 'cpu' || name === 'memory' || isHugePages(name)
}

/** True if the amount is a multiple of the page size in the name. */
export function isWholePages(name: string, amount: string): boolean {
  try {
    const size = parseQuantity(name.slice(HUGE_PAGES.length))
    if (quantitySign(size) <= 0 || quantityMilliValue(size) % 1000 !== 0) return false
    return quantityValue(parseQuantity(amount)) % quantityValue(size) === 0
  } catch {
    // The name has no page size.
    return false
  }
}

/** Any resource name of quotas and limits. */
export function validateResourceName(path: FieldPath, name: string): FieldError[] {
  const errors = path.check(asJson(name), () => qualifiedName(name))
  if (errors.length > 0 || name.includes('/') || standardResources.has(name)) return errors
  if (isHugePages(name) || name.startsWith(`requests.${HUGE_PAGES}`)) return errors
  return [path.invalid(asJson(name), 'must be a standard resource type or fully qualified')]
}

export function validateContainerResourceName(path: FieldPath, name: string): FieldError[] {
  const errors = validateResourceName(path, name)
  if (!name.includes('/')) {
    if (containerResources.has(name) || isHugePages(name)) return errors
    return [...errors, path.invalid(asJson(name), 'must be a standard resource for containers')]
  }
  if (isNativeResource(name) || isExtendedResource(name)) return errors
  return [...errors, path.invalid(asJson(name), "doesn't follow extended resource name standard")]
}

export function validatePodResourceName(path: FieldPath, name: string): FieldError[] {
  const errors = validateResourceName(path, name)
  if (errors.length > 0 || isPodLevelResource(name)) return errors
  return [path.notInSet(asJson(name), ['cpu', HUGE_PAGES, 'memory'])]
}
