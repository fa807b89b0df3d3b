/** Prepares the requests of a claim for the device search. */
import type {
  CapacityRequirements,
  DeviceClass,
  DeviceRequest,
  DeviceSelector,
  DeviceSubRequest,
  DeviceToleration,
  ExactDeviceRequest,
  ResourceClaim,
} from '#apis/resource/v1.ts'
import { objectKey } from '#meta/object.ts'

import type { CapacityAmounts } from './capacity.ts'
import type { OfferedDevice } from './inventory.ts'

/** The API's limit for one claim. */
export const MAX_DEVICES = 32

/** A request, or one of its alternatives (subrequests). */
export class DeviceRequestAlternative {
  readonly claim: ResourceClaim
  readonly claimAt: number
  /** The request's name and, for an alternative, `request/alternative` as in results. */
  readonly request: string
  readonly name: string
  readonly deviceClass: DeviceClass
  readonly isAll: boolean
  readonly isAdmin: boolean
  readonly selectors: readonly DeviceSelector[]
  readonly tolerations: readonly DeviceToleration[]
  readonly capacity: CapacityRequirements | undefined
  count: number
  /** The candidate devices in order; with mode All, all of them are needed. */
  devices: readonly OfferedDevice[] = []
  /** Whether each device is suitable on its own; undefined: not evaluated yet. */
  readonly verdicts: (boolean | undefined)[] = []
  /** Every candidate has been evaluated. */
  isExplored = false
  /** There are too few suitable devices. */
  isHopeless = false

  constructor(claim: ResourceClaim, alternative: ExactDeviceRequest | DeviceSubRequest, at: RequestPosition) {
    this.claim = claim
    this.claimAt = at.claimAt
    this.request = at.request
    this.name = 'name' in alternative ? `${at.request}/${alternative.name}` : at.request
    this.deviceClass = at.deviceClass
    this.isAll = alternative.allocationMode === 'All'
    this.isAdmin = 'adminAccess' in alternative && alternative.adminAccess
    this.selectors = alternative.selectors ?? []
    this.tolerations = alternative.tolerations ?? []
    this.capacity = alternative.capacity
    this.count = alternative.count ?? 0
  }

  /** The name for error messages. */
  get about(): string {
    return `claim ${objectKey(this.claim)}, request ${this.name.split('/').at(-1)}`
  }

  possibleFrom(start: number): number {
    let count = 0
    for (let at = start; at < this.devices.length; at++) if (this.verdicts[at] !== false) count++
    return count
  }
}

/** A device taken for a request. */
export interface TakenDevice {
  readonly wanted: DeviceRequestAlternative
  readonly offered: OfferedDevice
  /** The share of a device with several users. */
  readonly consumed?: CapacityAmounts
}

interface RequestPosition {
  readonly claimAt: number
  readonly request: string
  readonly deviceClass: DeviceClass
}

/** The alternatives of each request. Throws if the claim is invalid. */
export function alternativesByRequest(
  claim: ResourceClaim,
  claimAt: number,
  classOf: (name: string) => DeviceClass | undefined,
): DeviceRequestAlternative[][] {
  const { requests, constraints = [] } = claim.spec.devices
  const about = `claim ${objectKey(claim)}`
  const empty = constraints.findIndex((one) => one.matchAttribute === undefined && one.distinctAttribute === undefined)
  if (empty !== -1) throw new Error(`${about}, constraint #${empty}: empty constraint (unsupported constraint type?)`)
  return (requests ?? []).map((request) =>
    alternativesOf(request).map((alternative) => {
      const { deviceClassName: name, selectors = [] } = alternative
      const own = `${about}, request ${'name' in alternative ? alternative.name : request.name}`
      const unknown = selectors.findIndex(({ cel }) => cel === undefined)
      if (unknown !== -1)
        throw new Error(`${own}, selector #${unknown}: CEL expression empty (unsupported selector type?)`)
      const deviceClass = classOf(name)
      if (deviceClass === undefined)
        throw new Error(
          `${own}: could not retrieve device class ${name}: deviceclass.resource.k8s.io ${JSON.stringify(name)} not found`,
        )
      return new DeviceRequestAlternative(claim, alternative, { claimAt, request: request.name, deviceClass })
    }),
  )
}

export function alternativesOf({
  exactly,
  firstAvailable = [],
}: DeviceRequest): (ExactDeviceRequest | DeviceSubRequest)[] {
  return exactly === undefined ? firstAvailable : [exactly]
}
