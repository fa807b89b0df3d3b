/** Validates the status of a ResourceClaim: allocated devices, reservations and device status. */
import type {
  AllocatedDeviceStatus,
  AllocationResult,
  DeviceAllocationConfiguration,
  DeviceRequestAllocationResult,
  NetworkDeviceData,
  ResourceClaim,
  ResourceClaimConsumerReference,
} from '#apis/resource/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { byteLength, goQuote } from '#lib/go/text.ts'
import { formatIp, parseCidr } from '#lib/net/cidr.ts'
import { type Condition, validateConditions } from '#meta/conditions.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { immutable, validateDnsLabel } from '#meta/validation/rules.ts'
import { validateNodeSelector } from '#model/nodes/affinity.ts'
import { validateDriverName } from '#model/pod-spec/volumes/volume-sources.ts'

import {
  MAX_CONFIGS,
  type RequestNames,
  requestNamesOf,
  usesAdminAccess,
  usesConsumableCapacity,
  validateRequestName,
  validateRequestNames,
} from './claim-spec.ts'
import { validateBindingConditions, validateDeviceConfiguration, validateRawObject } from './device-config.ts'
import { validateList, validateSet } from './lists.ts'
import { validatePoolName, validateShareId } from './names.ts'

const MAX_CONSUMERS = 256
const MAX_RESULTS = 32
const MAX_CONDITIONS = 8
const MAX_INTERFACE_NAME_BYTES = 256
const MAX_HARDWARE_ADDRESS_BYTES = 128
const MAX_IPS = 16

interface PlacedDevice {
  readonly driver: string
  readonly pool: string
  readonly device: string
  readonly shareID?: string
}

/** The identity of a device, including shared ones. */
export function identityOf({ driver, pool, device, shareID }: PlacedDevice): string {
  return `${driver}/${pool}/${device}${shareID === undefined ? '' : `/${shareID}`}`
}

function resultsOf({ status }: ResourceClaim): readonly DeviceRequestAllocationResult[] {
  return status?.allocation?.devices.results ?? []
}

/** Status fields that need a gate, or an old value. */
const gatedParts: readonly {
  readonly gate: string
  readonly isUsed: (claim: ResourceClaim) => boolean
  readonly drop: (claim: ResourceClaim) => void
}[] = [
  {
    gate: 'DRAResourceClaimDeviceStatus',
    isUsed: ({ status }) => (status?.devices ?? []).length > 0,
    drop: ({ status }) => delete status?.devices,
  },
  {
    gate: 'DRAAdminAccess',
    isUsed: (claim) =>
      usesAdminAccess(claim.spec) || resultsOf(claim).some(({ adminAccess }) => adminAccess !== undefined),
    drop(claim) {
      for (const result of resultsOf(claim)) delete result.adminAccess
    },
  },
  {
    gate: 'DRAConsumableCapacity',
    isUsed: (claim) =>
      usesConsumableCapacity(claim.spec) ||
      resultsOf(claim).some(
        ({ shareID, consumedCapacity }) => shareID !== undefined || consumedCapacity !== undefined,
      ) ||
      (claim.status?.devices ?? []).some(({ shareID }) => shareID !== undefined),
    drop(claim) {
      for (const result of resultsOf(claim)) {
        delete result.shareID
        delete result.consumedCapacity
      }
      for (const device of claim.status?.devices ?? []) delete device.shareID
    },
  },
  {
    gate: 'DRADeviceBindingConditions',
    isUsed: (claim) =>
      resultsOf(claim).some(
        ({ bindingConditions, bindingFailureConditions }) =>
          bindingConditions !== undefined || bindingFailureConditions !== undefined,
      ),
    drop(claim) {
      for (const result of resultsOf(claim)) {
        delete result.bindingConditions
        delete result.bindingFailureConditions
      }
    },
  },
]

export function prepareClaimStatus(next: ResourceClaim, old: ResourceClaim, { isEnabled }: RuleContext): void {
  for (const { gate, isUsed, drop } of gatedParts) if (!isEnabled(gate) && !isUsed(old)) drop(next)
  dropReleasedDevices(next, old)
}

/** The report of a device is removed with the device. */
function dropReleasedDevices(next: ResourceClaim, old: ResourceClaim): void {
  if (next.status?.devices === undefined) return
  const kept = new Set(resultsOf(next).map(identityOf))
  const released = new Set(
    resultsOf(old)
      .map(identityOf)
      .filter((one) => !kept.has(one)),
  )
  const devices = next.status.devices.filter((device) => !released.has(identityOf(device)))
  if (devices.length > 0) next.status.devices = devices
  else delete next.status.devices
}

export function validateClaimStatus(next: ResourceClaim, old: ResourceClaim): FieldError[] {
  const { allocation, reservedFor, devices } = next.status ?? {}
  const allocated = new Set(resultsOf(next).map(identityOf))
  return collectErrors(
    validateSet(fieldPath('status.reservedFor'), reservedFor, MAX_CONSUMERS, {
      check: validateConsumer,
      identity: ({ uid }) => uid,
    }),
    validateSet(fieldPath('status.devices'), devices, Number.POSITIVE_INFINITY, {
      check: (path, device) => validateDeviceStatus(path, device, allocated),
      identity: identityOf,
    }),
    validateReservation(next, old),
    old.status?.allocation !== undefined &&
      allocation !== undefined &&
      immutable(fieldPath('status.allocation'), allocation, old.status.allocation),
    old.status?.allocation === undefined &&
      allocation !== undefined &&
      validateAllocation(fieldPath('status.allocation'), allocation, requestNamesOf(next.spec.devices)),
  )
}

function validateConsumer(path: FieldPath, consumer: ResourceClaimConsumerReference): FieldError[] {
  return (['resource', 'name', 'uid'] as const)
    .filter((name) => consumer[name] === '')
    .map((name) => path.child(name).required())
}

function validateReservation({ metadata, status }: ResourceClaim, old: ResourceClaim): FieldError[] {
  const consumers = status?.reservedFor ?? []
  if (consumers.length === 0) return []
  if (status?.allocation === undefined) {
    return [fieldPath('status.reservedFor').forbidden('may not be specified when `allocated` is not set')]
  }
  const textOf = ({ apiGroup = '', resource, name, uid }: ResourceClaimConsumerReference): string =>
    JSON.stringify([apiGroup, resource, name, uid])
  const known = new Set((old.status?.reservedFor ?? []).map(textOf))
  if (metadata.deletionTimestamp === undefined || consumers.every((one) => known.has(textOf(one)))) return []
  const detail = 'new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set'
  return [fieldPath('status.reservedFor').forbidden(detail)]
}

function validateAllocation(
  path: FieldPath,
  { devices, nodeSelector }: AllocationResult,
  names: RequestNames,
): FieldError[] {
  const at = (name: string): FieldPath => path.child('devices').child(name)
  return collectErrors(
    validateList(at('results'), devices.results, MAX_RESULTS, (field, one) => validateResult(field, one, names)),
    // The class and the claim.
    validateList(at('config'), devices.config, 2 * MAX_CONFIGS, (field, one) => validateConfig(field, one, names)),
    nodeSelector !== undefined && validateNodeSelector(path.child('nodeSelector'), nodeSelector),
  )
}

function validateResult(path: FieldPath, result: DeviceRequestAllocationResult, names: RequestNames): FieldError[] {
  return [
    ...validateRequestName(path.child('request'), result.request, names),
    ...validatePlace(path, result),
    ...validateBindingConditions(path, result),
    ...validateShareId(path.child('shareID'), result.shareID),
  ]
}

function validatePlace(path: FieldPath, { driver, pool, device }: PlacedDevice): FieldError[] {
  return [
    ...validateDriverName(path.child('driver'), driver),
    ...validatePoolName(path.child('pool'), pool),
    ...validateDnsLabel(path.child('device'), device),
  ]
}

const sources = ['FromClaim', 'FromClass']

function validateConfig(path: FieldPath, config: DeviceAllocationConfiguration, names: RequestNames): FieldError[] {
  const { source } = config
  const field = path.child('source')
  return collectErrors(
    source === '' && field.required(),
    source !== '' && !sources.includes(source) && field.notSupported(asJson(source), sources),
    validateRequestNames(path.child('requests'), config.requests, names),
    validateDeviceConfiguration(path, config),
  )
}

function validateDeviceStatus(
  path: FieldPath,
  status: AllocatedDeviceStatus,
  allocated: ReadonlySet<string>,
): FieldError[] {
  const { shareID, data, networkData } = status
  const conditions = status.conditions ?? []
  const field = path.child('conditions')
  const identity = identityOf(status)
  return collectErrors(
    validatePlace(path, status),
    validateShareId(path.child('shareID'), shareID),
    !allocated.has(identity) && path.invalid(identity, 'must be an allocated device in the claim'),
    conditions.length > MAX_CONDITIONS && field.tooMany(conditions.length, MAX_CONDITIONS),
    validateConditions(field, conditions as Condition[]),
    data !== undefined && validateRawObject(path.child('data'), data),
    networkData !== undefined && validateNetworkData(path.child('networkData'), networkData),
  )
}

function validateNetworkData(path: FieldPath, data: NetworkDeviceData): FieldError[] {
  const limited = (name: 'interfaceName' | 'hardwareAddress', limitBytes: number): FieldError[] =>
    byteLength(data[name] ?? '') > limitBytes ? [path.child(name).tooLong(limitBytes)] : []
  return [
    ...limited('interfaceName', MAX_INTERFACE_NAME_BYTES),
    ...limited('hardwareAddress', MAX_HARDWARE_ADDRESS_BYTES),
    ...validateSet(path.child('ips'), data.ips, MAX_IPS, { check: validateInterfaceAddress, identity: (ip) => ip }),
  ]
}

/** An address with a prefix length, in canonical form. */
function validateInterfaceAddress(path: FieldPath, text: string): FieldError[] {
  const cidr = parseCidr(text, { sloppy: true })
  if (cidr === undefined) {
    return [path.invalid(text, 'must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)')]
  }
  const canonical = `${formatIp({ family: cidr.family, value: cidr.address })}/${cidr.prefixLength}`
  return text === canonical ? [] : [path.invalid(text, `must be in canonical form (${goQuote(canonical)})`)]
}
