/** Requests and limits of containers and of whole pods, and the claims for devices. */
import type { PodSpec, ResourceClaim, ResourceRequirements } from '#apis/core/v1.ts'
import { compareText } from '#lib/go-text.ts'
import {
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityMilliValue,
  quantitySign,
  quantityText,
} from '#meta/quantity.ts'
import {
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  key,
  notFound,
  required,
} from '#meta/validation/field-error.ts'

import { containerLimits, containerRequests } from '../pod-resources.ts'
import { validateDnsLabel } from './checks.ts'
import {
  isHugePages,
  isIntegerResource,
  isOvercommitAllowed,
  isWholePages,
  validateContainerResourceName,
  validatePodResourceName,
} from './resource-names.ts'
import type { PodOptions } from './rules.ts'
import { isWindows } from './walk.ts'

type ResourceList = Readonly<Record<string, string>>
type NameCheck = (field: string, name: string) => FieldError[]

/** Names are the pod's claims, to which claims of the container must refer. */
export function validateContainerResources(
  path: string,
  resources: ResourceRequirements | undefined,
  claimNames: ReadonlySet<string>,
  options: PodOptions,
): FieldError[] {
  return validateRequirements(path, resources ?? {}, { claimNames, options, name: validateContainerResourceName })
}

/** What the sandbox of the pod takes beside its containers. */
export function validateOverhead(path: string, overhead: ResourceList | undefined, options: PodOptions): FieldError[] {
  if (overhead === undefined) return []
  return validateContainerResources(path, { limits: overhead }, new Set(), options)
}

/** A quantity that must not be negative, and whole where the resource is counted. */
export function validateResourceQuantity(field: string, name: string, amount: string): FieldError[] {
  const quantity = parseQuantity(amount)
  const errors = quantitySign(quantity) < 0 ? [invalid(field, amount, 'must be greater than or equal to 0')] : []
  if (!isIntegerResource(name) || quantityMilliValue(quantity) % 1000 === 0) return errors
  return [...errors, invalid(field, amount, 'must be an integer')]
}

interface RequirementRules {
  readonly claimNames: ReadonlySet<string>
  readonly options: PodOptions
  readonly name: NameCheck
}

function validateRequirements(path: string, resources: ResourceRequirements, rules: RequirementRules): FieldError[] {
  const { limits = {}, requests = {}, claims = [] } = resources
  const errors = [
    ...sorted(limits).flatMap(([name, amount]) =>
      validateAmount(key(child(path, 'limits'), name), [name, amount], rules),
    ),
    ...sorted(requests).flatMap(([name, amount]) => [
      ...validateAmount(key(child(path, 'requests'), name), [name, amount], rules, () =>
        validateRequestLimit(path, [name, amount], limits),
      ),
    ]),
  ]
  const names = [...Object.keys(limits), ...Object.keys(requests)]
  if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory')) {
    errors.push(forbidden(path, 'HugePages require cpu or memory'))
  }
  return [...errors, ...validateClaims(child(path, 'claims'), claims, rules.claimNames)]
}

/** Go's maps have no order; ours is that of the names, so that answers do not vary. */
function sorted(list: ResourceList): [string, string][] {
  return Object.entries(list).sort(([a], [b]) => compareText(a, b))
}

/** `between` comes after the quantity itself and before its pages, as upstream has it. */
function validateAmount(
  field: string,
  [name, amount]: readonly [string, string],
  { name: checkName, options }: RequirementRules,
  between: () => FieldError[] = () => [],
): FieldError[] {
  const errors = [...checkName(field, name), ...validateResourceQuantity(field, name, amount), ...between()]
  if (!isHugePages(name) || options.indivisibleHugePages || isWholePages(name, amount)) return errors
  return [...errors, invalid(field, amount, `${amount} is not positive integer multiple of ${name}`)]
}

function validateRequestLimit(
  path: string,
  [name, amount]: readonly [string, string],
  limits: ResourceList,
): FieldError[] {
  const requests = child(path, 'requests')
  const limit = Object.hasOwn(limits, name) ? limits[name] : undefined
  if (limit === undefined) {
    if (isOvercommitAllowed(name)) return []
    return [required(child(path, 'limits'), 'Limit must be set for non overcommitable resources')]
  }
  const order = compareQuantities(parseQuantity(amount), parseQuantity(limit))
  if (order !== 0 && !isOvercommitAllowed(name)) {
    return [invalid(requests, amount, `must be equal to ${name} limit of ${limit}`)]
  }
  return order > 0 ? [invalid(requests, amount, `must be less than or equal to ${name} limit of ${limit}`)] : []
}

function validateClaims(field: string, claims: readonly ResourceClaim[], known: ReadonlySet<string>): FieldError[] {
  const seen: SeenClaims = { entries: new Set(), requests: new Map() }
  return claims.flatMap((claim, at) => {
    const path = index(field, at)
    if (claim.name === '') return [required(path)]
    return [...validateClaim(path, claim, seen), ...validateClaimKnown(path, claim.name, known)]
  })
}

interface SeenClaims {
  /** `claim` for a claim as a whole, `claim/request` for a request within one. */
  readonly entries: Set<string>
  /** How many requests of each claim are in `entries`. */
  readonly requests: Map<string, number>
}

/** A claim as a whole overlaps with each request within it. */
function validateClaim(path: string, { name, request = '' }: ResourceClaim, seen: SeenClaims): FieldError[] {
  if (seen.entries.has(name)) return [duplicate(path, name)]
  const requests = seen.requests.get(name) ?? 0
  if (request === '') {
    seen.entries.add(name)
    return Array.from({ length: requests }, () => duplicate(path, name))
  }
  const errors = validateDnsLabel(child(path, 'request'), request)
  const full = `${name}/${request}`
  if (seen.entries.has(full)) return [...errors, duplicate(path, full)]
  seen.entries.add(full)
  seen.requests.set(name, requests + 1)
  return errors
}

function validateClaimKnown(path: string, name: string, known: ReadonlySet<string>): FieldError[] {
  if (known.has(name)) return []
  const names = [...known].sort(compareText)
  const which = names.length === 0 ? ' which is empty' : `: ${names.join(', ')}`
  return [{ ...notFound(path, name), detail: `must be one of the names in pod.spec.resourceClaims${which}` }]
}

/** Resources of the pod as a whole, and how they fit with those of its containers. */
export function validatePodResources(
  path: string,
  spec: PodSpec,
  claimNames: ReadonlySet<string>,
  options: PodOptions,
): FieldError[] {
  const { resources } = spec
  if (resources === undefined) return []
  const field = child(path, 'resources')
  if (isWindows(spec)) return [forbidden(field, 'may not be set for a windows pod')]
  return [
    ...(resources.claims === undefined
      ? []
      : [forbidden(child(field, 'claims'), 'claims may not be set for Resources at pod-level')]),
    ...validateRequirements(field, resources, { claimNames, options, name: validatePodResourceName }),
    ...validateAggregates(child(field, 'requests'), resources.requests, containerRequests(spec), 'requests'),
    ...validateAggregates(child(field, 'limits'), resources.limits, hugePagesOnly(containerLimits(spec)), 'limits'),
    ...validateContainerLimits(field, spec),
  ]
}

function hugePagesOnly(list: ReadonlyMap<string, Quantity>): ReadonlyMap<string, Quantity> {
  return new Map([...list].filter(([name]) => isHugePages(name)))
}

function validateAggregates(
  field: string,
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
      return [invalid(key(field, name), pod, least)]
    })
}

function validateContainerLimits(field: string, { containers, resources }: PodSpec): FieldError[] {
  const podLimits = resources?.limits ?? {}
  return (containers ?? []).flatMap((container, at) =>
    sorted(container.resources?.limits ?? {}).flatMap(([name, amount]) => {
      const limit = Object.hasOwn(podLimits, name) ? podLimits[name] : undefined
      if (limit === undefined || compareQuantities(parseQuantity(amount), parseQuantity(limit)) <= 0) return []
      const path = child(key(index(child(field, 'containers'), at), name), 'limits')
      return [invalid(path, amount, `must be less than or equal to pod limits of ${limit}`)]
    }),
  )
}
