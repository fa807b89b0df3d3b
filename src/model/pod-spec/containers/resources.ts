/** Validates requests, limits and device claims of containers and pods. */
import type { PodSpec, ResourceClaim, ResourceRequirements } from '#apis/core/v1.ts'
import { compareText } from '#lib/go/text.ts'
import {
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityMilliValue,
  quantitySign,
  quantityText,
} from '#meta/quantity.ts'
import { collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { validateDnsLabel } from '#meta/validation/rules.ts'

import { containerLimits, containerRequests } from '../../pod-resources.ts'
import type { PodOptions } from '../rules.ts'
import { isWindows } from '../walk.ts'
import {
  isHugePages,
  isIntegerResource,
  isOvercommitAllowed,
  isWholePages,
  validateContainerResourceName,
  validatePodResourceName,
} from './resource-names.ts'

type ResourceList = Readonly<Record<string, string>>
type NameCheck = (path: FieldPath, name: string) => FieldError[]

/** The pod's claims, to which containers must refer. */
export function validateContainerResources(
  path: FieldPath,
  resources: ResourceRequirements | undefined,
  claimNames: ReadonlySet<string>,
  options: PodOptions,
): FieldError[] {
  return validateRequirements(path, resources ?? {}, { claimNames, options, name: validateContainerResourceName })
}

/** The overhead of the pod's sandbox. */
export function validateOverhead(
  path: FieldPath,
  overhead: ResourceList | undefined,
  options: PodOptions,
): FieldError[] {
  if (overhead === undefined) return []
  return validateContainerResources(path, { limits: overhead }, new Set(), options)
}

/** A non-negative quantity, integral if the resource is counted. */
export function validateResourceQuantity(path: FieldPath, name: string, amount: string): FieldError[] {
  const quantity = parseQuantity(amount)
  const errors = quantitySign(quantity) < 0 ? [path.invalid(amount, 'must be greater than or equal to 0')] : []
  if (!isIntegerResource(name) || quantityMilliValue(quantity) % 1000 === 0) return errors
  return [...errors, path.invalid(amount, 'must be an integer')]
}

interface RequirementRules {
  readonly claimNames: ReadonlySet<string>
  readonly options: PodOptions
  readonly name: NameCheck
}

function validateRequirements(path: FieldPath, resources: ResourceRequirements, rules: RequirementRules): FieldError[] {
  const { limits = {}, requests = {}, claims = [] } = resources
  const names = [...Object.keys(limits), ...Object.keys(requests)]
  return collectErrors(
    sorted(limits).flatMap(([name, amount]) => validateAmount(path.child('limits').key(name), [name, amount], rules)),
    sorted(requests).flatMap(([name, amount]) => [
      ...validateAmount(path.child('requests').key(name), [name, amount], rules, () =>
        validateRequestLimit(path, [name, amount], limits),
      ),
    ]),
    names.some(isHugePages) &&
      !names.includes('cpu') &&
      !names.includes('memory') &&
      path.forbidden('HugePages require cpu or memory'),
    validateClaims(path.child('claims'), claims, rules.claimNames),
  )
}

/** Sorted by name, because Go's maps have no order and answers must not vary. */
function sorted(list: ResourceList): [string, string][] {
  return Object.entries(list).sort(([a], [b]) => compareText(a, b))
}

/** `between` comes after the quantity itself and before its page check, as in upstream. */
function validateAmount(
  path: FieldPath,
  [name, amount]: readonly [string, string],
  { name: checkName, options }: RequirementRules,
  between: () => FieldError[] = () => [],
): FieldError[] {
  const errors = [...checkName(path, name), ...validateResourceQuantity(path, name, amount), ...between()]
  if (!isHugePages(name) || options.indivisibleHugePages || isWholePages(name, amount)) return errors
  return [...errors, path.invalid(amount, `${amount} is not positive integer multiple of ${name}`)]
}

function validateRequestLimit(
  path: FieldPath,
  [name, amount]: readonly [string, string],
  limits: ResourceList,
): FieldError[] {
  const requests = path.child('requests')
  const limit = Object.hasOwn(limits, name) ? limits[name] : undefined
  if (limit === undefined) {
    if (isOvercommitAllowed(name)) return []
    return [path.child('limits').required('Limit must be set for non overcommitable resources')]
  }
  const order = compareQuantities(parseQuantity(amount), parseQuantity(limit))
  if (order !== 0 && !isOvercommitAllowed(name)) {
    return [requests.invalid(amount, `must be equal to ${name} limit of ${limit}`)]
  }
  return order > 0 ? [requests.invalid(amount, `must be less than or equal to ${name} limit of ${limit}`)] : []
}

function validateClaims(path: FieldPath, claims: readonly ResourceClaim[], known: ReadonlySet<string>): FieldError[] {
  const seen: SeenClaims = { entries: new Set(), requests: new Map() }
  return path.each(claims, (path, claim) => {
    if (claim.name === '') return [path.required()]
    return [...validateClaim(path, claim, seen), ...validateClaimKnown(path, claim.name, known)]
  })
}

interface SeenClaims {
  /** `claim` for a whole claim, `claim/request` for a request within it. */
  readonly entries: Set<string>
  /** The number of requests of each claim in `entries`. */
  readonly requests: Map<string, number>
}

/** A whole claim overlaps with each of its requests. */
function validateClaim(path: FieldPath, { name, request = '' }: ResourceClaim, seen: SeenClaims): FieldError[] {
  if (seen.entries.has(name)) return [path.duplicate(name)]
  const requests = seen.requests.get(name) ?? 0
  if (request === '') {
    seen.entries.add(name)
    return Array.from({ length: requests }, () => path.duplicate(name))
  }
  const errors = validateDnsLabel(path.child('request'), request)
  const full = `${name}/${request}`
  if (seen.entries.has(full)) return [...errors, path.duplicate(full)]
  seen.entries.add(full)
  seen.requests.set(name, requests + 1)
  return errors
}

function validateClaimKnown(path: FieldPath, name: string, known: ReadonlySet<string>): FieldError[] {
  if (known.has(name)) return []
  const names = [...known].sort(compareText)
  const which = names.length === 0 ? ' which is empty' : `: ${names.join(', ')}`
  return [{ ...path.notFound(name), detail: `must be one of the names in pod.spec.resourceClaims${which}` }]
}

/** Pod-level resources, and their consistency with those of containers. */
export function validatePodResources(
  path: FieldPath,
  spec: PodSpec,
  claimNames: ReadonlySet<string>,
  options: PodOptions,
): FieldError[] {
  const { resources } = spec
  if (resources === undefined) return []
  const field = path.child('resources')
  if (isWindows(spec)) return [field.forbidden('may not be set for a windows pod')]
  return collectErrors(
    resources.claims !== undefined &&
      field.child('claims').forbidden('claims may not be set for Resources at pod-level'),
    validateRequirements(field, resources, { claimNames, options, name: validatePodResourceName }),
    validateAggregates(field.child('requests'), resources.requests, containerRequests(spec), 'requests'),
    validateAggregates(field.child('limits'), resources.limits, hugePagesOnly(containerLimits(spec)), 'limits'),
    validateContainerLimits(field, spec),
  )
}

function hugePagesOnly(list: ReadonlyMap<string, Quantity>): ReadonlyMap<string, Quantity> {
  return new Map([...list].filter(([name]) => isHugePages(name)))
}

function validateAggregates(
  path: FieldPath,
  own: ResourceList = {},
  total: ReadonlyMap<string, Quantity>,
  what: 'requests' | 'limits',
): FieldError[] {
  return [...total]
    .sort(([a], [b]) => compareText(a, b))
    .flatMap(([name, amount]) => {
      const pod = Object.hasOwn(own, name) ? own[name] : undefined
      if (pod === undefined || compareQuantities(amount, parseQuantity(pod)) <= 0) return []
      const least = `must be greater than or equal to aggregate container ${what} of ${quantityText(amount)}`
      return [path.key(name).invalid(pod, least)]
    })
}

function validateContainerLimits(field: FieldPath, { containers, resources }: PodSpec): FieldError[] {
  const podLimits = resources?.limits ?? {}
  return field.child('containers').each(containers, (itemPath, container) =>
    sorted(container.resources?.limits ?? {}).flatMap(([name, amount]) => {
      const limit = Object.hasOwn(podLimits, name) ? podLimits[name] : undefined
      if (limit === undefined || compareQuantities(parseQuantity(amount), parseQuantity(limit)) <= 0) return []
      const path = itemPath.key(name).child('limits')
      return [path.invalid(amount, `must be less than or equal to pod limits of ${limit}`)]
    }),
  )
}
