/** What a claim asks for, request by request, made ready for looking for devices. */
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

import type { Amounts } from './capacity.ts'
import type { OfferedDevice } from './inventory.ts'

/** The most that one claim can have. */
export const MAX_DEVICES = 32

/** A request, or one of its alternatives. */
export class Wanted {
  readonly claim: ResourceClaim
  readonly claimAt: number
  /** Of the request, and of the alternative in the words of results. */
  readonly request: string
  readonly name: string
  readonly deviceClass: DeviceClass
  readonly isAll: boolean
  readonly isAdmin: boolean
  readonly selectors: readonly DeviceSelector[]
  readonly tolerations: readonly DeviceToleration[]
  readonly capacity: CapacityRequirements | undefined
  count: number
  /** Those that come into question, in order; all of them where all are wanted. */
  devices: readonly OfferedDevice[] = []
  /** Whether each would do, if nothing else were taken; undefined: nobody has looked. */
  readonly verdicts: (boolean | undefined)[] = []
  /** Each device was looked at that could be. */
  isExplored = false
  /** There are too few devices that would do. */
  isHopeless = false

  constructor(claim: ResourceClaim, wish: ExactDeviceRequest | DeviceSubRequest, at: WantedAt) {
    this.claim = claim
    this.claimAt = at.claimAt
    this.request = at.request
    this.name = 'name' in wish ? `${at.request}/${wish.name}` : at.request
    this.deviceClass = at.deviceClass
    this.isAll = wish.allocationMode === 'All'
    this.isAdmin = 'adminAccess' in wish && wish.adminAccess
    this.selectors = wish.selectors ?? []
    this.tolerations = wish.tolerations ?? []
    this.capacity = wish.capacity
    this.count = wish.count ?? 0
  }

  /** For complaints. */
  get about(): string {
    return `claim ${objectKey(this.claim)}, request ${this.name.split('/').at(-1)}`
  }

  possibleFrom(start: number): number {
    let count = 0
    for (let at = start; at < this.devices.length; at++) if (this.verdicts[at] !== false) count++
    return count
  }
}

/** A device for a request. */
export interface Taken {
  readonly wanted: Wanted
  readonly offered: OfferedDevice
  /** Of a device that several may have. */
  readonly consumed?: Amounts
}

interface WantedAt {
  readonly claimAt: number
  readonly request: string
  readonly deviceClass: DeviceClass
}

/** By request: its alternatives. Throws what is wrong with the claim. */
export function wantedBy(
  claim: ResourceClaim,
  claimAt: number,
  classOf: (name: string) => DeviceClass | undefined,
): Wanted[][] {
  const { requests, constraints = [] } = claim.spec.devices
  const about = `claim ${objectKey(claim)}`
  const empty = constraints.findIndex((one) => one.matchAttribute === undefined && one.distinctAttribute === undefined)
  if (empty !== -1) throw new Error(`${about}, constraint #${empty}: empty constraint (unsupported constraint type?)`)
  return (requests ?? []).map((request) =>
    wishesOf(request).map((wish) => {
      const { deviceClassName: name, selectors = [] } = wish
      const own = `${about}, request ${'name' in wish ? wish.name : request.name}`
      const unknown = selectors.findIndex(({ cel }) => cel === undefined)
      if (unknown !== -1)
        throw new Error(`${own}, selector #${unknown}: CEL expression empty (unsupported selector type?)`)
      const deviceClass = classOf(name)
      if (deviceClass === undefined)
        throw new Error(
          `${own}: could not retrieve device class ${name}: deviceclass.resource.k8s.io ${JSON.stringify(name)} not found`,
        )
      return new Wanted(claim, wish, { claimAt, request: request.name, deviceClass })
    }),
  )
}

export function wishesOf({ exactly, firstAvailable = [] }: DeviceRequest): (ExactDeviceRequest | DeviceSubRequest)[] {
  return exactly === undefined ? firstAvailable : [exactly]
}
