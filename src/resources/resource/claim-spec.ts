/** Validates the spec of a ResourceClaim or its template: device requests, constraints and configuration. */
import type {
  DeviceClaim,
  DeviceConstraint,
  DeviceRequest,
  DeviceSubRequest,
  DeviceToleration,
  ExactDeviceRequest,
  ResourceClaimSpec,
} from '#apis/resource/v1.ts'
import type { ResourceClaimSpec as OldResourceClaimSpec } from '#apis/resource/v1beta1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { asJson, collectErrors, type FieldError, type FieldPath } from '#meta/validation/field-path.ts'
import { validateDnsLabel, validateDnsSubdomain } from '#meta/validation/rules.ts'

import { validateDeviceConfiguration, validateSelectors, validateToleration } from './device-config.ts'
import { validateList, validateSet } from './lists.ts'
import { validateQualifiedAttribute } from './names.ts'

const MAX_REQUESTS = 32
const MAX_CONSTRAINTS = 32
export const MAX_CONFIGS = 32
const MAX_SUBREQUESTS = 8

const EXACT_COUNT = 'ExactCount'

type AnyRequest = ExactDeviceRequest | DeviceSubRequest

function requestsOf({ devices }: ResourceClaimSpec): readonly DeviceRequest[] {
  return devices.requests ?? []
}

/** All requests of a single class, wherever they are. */
function plainRequests(spec: ResourceClaimSpec): AnyRequest[] {
  return requestsOf(spec).flatMap(({ exactly, firstAvailable = [] }) => [
    ...(exactly === undefined ? [] : [exactly]),
    ...firstAvailable,
  ])
}

export function defaultClaimSpec(spec: ResourceClaimSpec): void {
  for (const request of plainRequests(spec)) defaultRequest(request)
}

/** In v1beta1 the fields of `exactly` are in the request itself; one with alternatives has no class. */
export function defaultOldClaimSpec({ devices }: OldResourceClaimSpec): void {
  for (const request of devices.requests ?? []) {
    const plain = request.deviceClassName === '' ? [] : [request]
    for (const one of [...plain, ...(request.firstAvailable ?? [])]) defaultRequest(one)
    defaultTolerations(request.tolerations)
  }
}

function defaultRequest(request: AnyRequest): void {
  request.allocationMode ||= EXACT_COUNT
  if (request.allocationMode === EXACT_COUNT) request.count ||= 1
  defaultTolerations(request.tolerations)
}

export function defaultTolerations(tolerations: readonly DeviceToleration[] = []): void {
  for (const toleration of tolerations) toleration.operator ||= 'Equal'
}

/** Fields behind a gate: whether a spec uses them, and how they are dropped. */
interface GatedPart {
  readonly gate: string
  readonly isUsed: (spec: ResourceClaimSpec) => boolean
  readonly drop: (spec: ResourceClaimSpec) => void
}

const gatedParts: readonly GatedPart[] = [
  {
    gate: 'DRAPrioritizedList',
    isUsed: (spec) => requestsOf(spec).some(({ firstAvailable = [] }) => firstAvailable.length > 0),
    drop(spec) {
      for (const request of requestsOf(spec)) delete request.firstAvailable
    },
  },
  {
    gate: 'DRADeviceTaints',
    isUsed: (spec) => plainRequests(spec).some(({ tolerations = [] }) => tolerations.length > 0),
    drop(spec) {
      for (const request of plainRequests(spec)) delete request.tolerations
    },
  },
  {
    gate: 'DRAAdminAccess',
    isUsed: usesAdminAccess,
    drop(spec) {
      for (const { exactly } of requestsOf(spec)) delete exactly?.adminAccess
    },
  },
  {
    gate: 'DRAConsumableCapacity',
    isUsed: usesConsumableCapacity,
    drop(spec) {
      for (const constraint of spec.devices.constraints ?? []) delete constraint.distinctAttribute
      for (const request of plainRequests(spec)) delete request.capacity
    },
  },
]

export function usesAdminAccess(spec: ResourceClaimSpec): boolean {
  return requestsOf(spec).some(({ exactly }) => exactly?.adminAccess !== undefined)
}

export function usesConsumableCapacity(spec: ResourceClaimSpec): boolean {
  return (
    (spec.devices.constraints ?? []).some(({ distinctAttribute }) => distinctAttribute !== undefined) ||
    plainRequests(spec).some(({ capacity }) => capacity !== undefined)
  )
}

export function dropGatedClaimFields(
  spec: ResourceClaimSpec,
  old: ResourceClaimSpec | undefined,
  { isEnabled }: RuleContext,
): void {
  for (const { gate, isUsed, drop } of gatedParts) {
    if (!isEnabled(gate) && (old === undefined || !isUsed(old))) drop(spec)
  }
}

/** Names of requests, with those of their alternatives. */
export type RequestNames = ReadonlyMap<string, ReadonlySet<string>>

export function requestNamesOf({ requests }: DeviceClaim): RequestNames {
  return new Map(
    (requests ?? []).map(({ name, firstAvailable = [] }) => [name, new Set(firstAvailable.map((one) => one.name))]),
  )
}

export function validateClaimSpec(path: FieldPath, { devices }: ResourceClaimSpec, context: RuleContext): FieldError[] {
  const names = requestNamesOf(devices)
  const at = (name: string): FieldPath => path.child('devices').child(name)
  return [
    ...validateSet(at('requests'), devices.requests ?? [], MAX_REQUESTS, {
      check: validateRequest,
      identity: ({ name }) => name,
    }),
    ...validateList(at('constraints'), devices.constraints, MAX_CONSTRAINTS, (field, constraint) =>
      validateConstraint(field, constraint, names, context),
    ),
    ...validateList(at('config'), devices.config, MAX_CONFIGS, (field, config) => [
      ...validateRequestNames(field.child('requests'), config.requests, names),
      ...validateDeviceConfiguration(field, config),
    ]),
  ]
}

const ONE_OF = 'exactly one of `exactly` or `firstAvailable` is required'

function validateRequest(path: FieldPath, { name, exactly, firstAvailable = [] }: DeviceRequest): FieldError[] {
  const errors = validateDnsLabel(path.child('name'), name)
  if (firstAvailable.length > 0) {
    if (exactly !== undefined) return [...errors, path.invalid(null, `${ONE_OF}, but multiple fields are set`)]
    const rules = {
      check: (path: FieldPath, one: DeviceSubRequest): FieldError[] => [
        ...validateDnsLabel(path.child('name'), one.name),
        ...validatePlainRequest(path, one),
      ],
      identity: (one: DeviceSubRequest): string => one.name,
    }
    return [...errors, ...validateSet(path.child('firstAvailable'), firstAvailable, MAX_SUBREQUESTS, rules)]
  }
  if (exactly === undefined) return [...errors, path.required(ONE_OF)]
  return [...errors, ...validatePlainRequest(path.child('exactly'), exactly)]
}

function validatePlainRequest(path: FieldPath, request: AnyRequest): FieldError[] {
  const { deviceClassName: className, selectors, tolerations = [] } = request
  const field = path.child('deviceClassName')
  return [
    ...(className === '' ? [field.required()] : validateDnsSubdomain(field, className)),
    ...validateSelectors(path.child('selectors'), selectors),
    ...validateMode(path, request),
    ...path.child('tolerations').each(tolerations, validateToleration),
  ]
}

function validateMode(path: FieldPath, { allocationMode: mode = '', count = 0 }: AnyRequest): FieldError[] {
  const field = path.child('count')
  if (mode === 'All') {
    return count === 0 ? [] : [field.invalid(count, "must not be specified when allocationMode is 'All'")]
  }
  if (mode === EXACT_COUNT) return count > 0 ? [] : [field.invalid(count, 'must be greater than zero')]
  return [path.child('allocationMode').notSupported(asJson(mode), ['All', EXACT_COUNT])]
}

function validateConstraint(
  path: FieldPath,
  { requests, matchAttribute: match, distinctAttribute: distinct }: DeviceConstraint,
  names: RequestNames,
  { isEnabled }: RuleContext,
): FieldError[] {
  const errors = validateRequestNames(path.child('requests'), requests, names)
  if (match !== undefined) return [...errors, ...validateQualifiedAttribute(path.child('matchAttribute'), match)]
  if (distinct !== undefined) {
    return [...errors, ...validateQualifiedAttribute(path.child('distinctAttribute'), distinct)]
  }
  // Upstream never reports this.
  const detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
  const either = isEnabled('DRAConsumableCapacity')
  return [...errors, either ? path.required(detail) : path.child('matchAttribute').required()]
}

/** A list of requests that a constraint or configuration refers to. */
export function validateRequestNames(
  path: FieldPath,
  requests: readonly string[] | undefined,
  names: RequestNames,
): FieldError[] {
  return validateSet(path, requests, MAX_REQUESTS, {
    check: (place, name) => validateRequestName(place, name, names),
    identity: (name) => name,
  })
}

export function validateRequestName(path: FieldPath, text: string, names: RequestNames): FieldError[] {
  const detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
  const [name = '', part, ...more] = text.split('/')
  if (more.length > 0) return [path.invalid(text, detail)]
  const parts = names.get(name)
  const isKnown = parts !== undefined && (part === undefined || parts.has(part))
  return collectErrors(
    validateDnsLabel(path, name),
    part !== undefined && validateDnsLabel(path, part),
    !isKnown && path.invalid(text, detail),
  )
}
