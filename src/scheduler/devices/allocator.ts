/**
 * Finds devices for the claims of a pod on a node. It returns the first combination that meets all requests, in the
 * order of claims, requests, alternatives and devices. Pure. The search yields at every step (`Steps`), so that its
 * caller can interrupt it. Unlike upstream's, it never tries an unsuitable device twice and stops as soon as one
 * request cannot be met.
 */
import type { Node } from '#apis/core/v1.ts'
import type { DeviceClass, DeviceSelector, ResourceClaim } from '#apis/resource/v1.ts'
import { shouldYield, type Steps } from '#lib/time-slicing.ts'
import { objectKey } from '#meta/object.ts'
import { parseQuantity, type Quantity, quantitySign, subtractQuantities } from '#meta/quantity.ts'
import { isRepelled } from '#model/nodes/fit.ts'

import { consumptionOf, hasRoom } from './capacity.ts'
import { isAllowed } from './constraint.ts'
import {
  alternativesByRequest,
  type DeviceRequestAlternative,
  MAX_DEVICES,
  type TakenDevice,
} from './device-requests.ts'
import { isPlacedOn, type OfferedDevice, type Pool } from './inventory.ts'
import type { Ledger } from './ledger.ts'

export interface AllocationInput {
  readonly node: Node
  readonly pools: readonly Pool[]
  readonly claims: readonly ResourceClaim[]
  readonly ledger: Pick<Ledger, 'isTaken' | 'consumedOf' | 'countersLeft'>
  readonly classOf: (name: string) => DeviceClass | undefined
  /** Throws if an expression fails. */
  readonly matches: (expression: string, device: OfferedDevice) => boolean
  /** Whether taints exclude devices. */
  readonly heedsTaints: boolean
}

/** The allocation of each claim, or why there is none. Throws if a claim or class is invalid. */
export function* allocate(input: AllocationInput): Steps<readonly (readonly TakenDevice[])[] | string> {
  const search = new AllocationSearch(input)
  for (const claim of input.claims) yield* search.ready(claim)
  if (yield* search.from(0, 0)) return search.taken
  const isInvalid = input.pools.some(({ flaw }) => flaw === 'invalid')
  return isInvalid ? 'invalid resource pools were encountered' : 'cannot allocate all claims'
}

const KEEPING_AWAY = ['NoSchedule', 'NoExecute']

class AllocationSearch {
  readonly #input: AllocationInput
  /** The alternatives by claim and request. */
  readonly #requests: DeviceRequestAlternative[][][] = []
  readonly taken: TakenDevice[][] = []
  /** The same by device. */
  readonly #holders = new Map<string, TakenDevice[]>()
  /** The remaining counters of pools that this search has used. */
  readonly #counters = new Map<Pool, Map<string, Quantity>>()
  /** Some request cannot be met in any combination. */
  #isHopeless = false

  constructor(input: AllocationInput) {
    this.#input = input
  }

  /** Prepares the requests of the claim. */
  *ready(claim: ResourceClaim): Steps<void> {
    const { classOf, pools } = this.#input
    const at = this.taken.push([]) - 1
    const requests = alternativesByRequest(claim, at, classOf)
    this.#requests.push(requests)
    for (const wanted of requests.flat()) {
      if (wanted.isAll) yield* this.#findAll(wanted)
      else
        wanted.devices = pools.flatMap(({ devices }) => devices).filter(({ id }) => wanted.isAdmin || !this.#isGone(id))
    }
    const least = this.#leastFrom(at, 0)
    if (least > MAX_DEVICES)
      throw new Error(
        `claim ${objectKey(claim)}: number of requested devices ${least} exceeds the claim limit of ${MAX_DEVICES}`,
      )
  }

  *#findAll(wanted: DeviceRequestAlternative): Steps<void> {
    const found: OfferedDevice[] = []
    for (const { id, flaw, devices } of this.#input.pools) {
      const state = flaw === 'invalid' ? 'invalid' : 'being updated'
      if (flaw !== undefined)
        throw new Error(`${wanted.about}: asks for all devices, but resource pool ${id} is currently ${state}`)
      for (const offered of devices) {
        yield
        if (this.#isSelected(wanted, offered) && this.#hasRoom(wanted, offered, [])) found.push(offered)
      }
    }
    wanted.devices = found
    wanted.count = found.length
  }

  /** Continues with this request. */
  *from(claimAt: number, at: number): Steps<boolean> {
    const requests = this.#requests[claimAt]
    if (requests === undefined) return true
    const alternatives = requests[at]
    if (alternatives === undefined) return yield* this.from(claimAt + 1, 0)
    const room = MAX_DEVICES - (this.taken[claimAt]?.length ?? 0) - this.#leastFrom(claimAt, at + 1)
    for (const wanted of alternatives) {
      if (this.#isHopeless) return false
      if (wanted.isHopeless || wanted.count > room || (wanted.isAll && wanted.count === 0)) continue
      const next = (): Steps<boolean> => this.from(claimAt, at + 1)
      if (yield* wanted.isAll ? this.#takeAll(wanted, 0, next) : this.#take(wanted, { have: 0, start: 0 }, next))
        return true
    }
    this.#isHopeless ||= alternatives.every(({ isHopeless }) => isHopeless)
    return false
  }

  /** Takes one more device from `start` on: the order within a request does not matter. */
  *#take(
    wanted: DeviceRequestAlternative,
    { have, start }: { readonly have: number; readonly start: number },
    next: () => Steps<boolean>,
  ): Steps<boolean> {
    if (have === wanted.count) return yield* next()
    let left = wanted.possibleFrom(start)
    for (let at = start; at < wanted.devices.length; at++) {
      if (wanted.verdicts[at] === false) continue
      if (this.#isHopeless || (wanted.isExplored && left < wanted.count - have)) break
      left--
      // The first evaluation of a device may take long.
      if (wanted.verdicts[at] === undefined || shouldYield()) yield
      const giveBack = this.#tryAt(wanted, at)
      if (giveBack === undefined) continue
      if (yield* this.#take(wanted, { have: have + 1, start: at + 1 }, next)) return true
      giveBack()
    }
    if (have === 0 && !wanted.isExplored) yield* this.#explore(wanted)
    return false
  }

  #tryAt(wanted: DeviceRequestAlternative, at: number): (() => void) | undefined {
    const offered = wanted.devices[at] as OfferedDevice
    if (this.#isTakenByPod(wanted, offered)) return undefined
    wanted.verdicts[at] ??= this.#isPossible(wanted, offered)
    return wanted.verdicts[at] ? this.#takeDevice(wanted, offered) : undefined
  }

  /** Returns whether a failure depends on devices that other requests took. An expression that failed may be true. */
  *#explore(wanted: DeviceRequestAlternative): Steps<void> {
    for (const [at, offered] of wanted.devices.entries()) {
      if (wanted.verdicts[at] !== undefined) continue
      yield
      try {
        wanted.verdicts[at] = this.#isPossible(wanted, offered)
      } catch {
        continue
      }
    }
    wanted.isExplored = true
    wanted.isHopeless = wanted.possibleFrom(0) < wanted.count
  }

  *#takeAll(wanted: DeviceRequestAlternative, at: number, next: () => Steps<boolean>): Steps<boolean> {
    const offered = wanted.devices[at]
    if (offered === undefined) return yield* next()
    if (shouldYield()) yield
    if (this.#isTakenByPod(wanted, offered) || this.#isGone(offered.id, wanted)) return false
    const giveBack = this.#takeDevice(wanted, offered)
    if (giveBack === undefined) return false
    if (yield* this.#takeAll(wanted, at + 1, next)) return true
    giveBack()
    return false
  }

  /** Depends only on the device, its current use and the request. */
  #isPossible(wanted: DeviceRequestAlternative, offered: OfferedDevice): boolean {
    return this.#isSelected(wanted, offered) && this.#hasRoom(wanted, offered, []) && !this.#isRepelled(wanted, offered)
  }

  #isSelected({ deviceClass, selectors, claim }: DeviceRequestAlternative, offered: OfferedDevice): boolean {
    const { device, slice } = offered
    const fits = (of: string, list: readonly DeviceSelector[]): boolean =>
      list.every(({ cel }, at) => {
        try {
          return this.#input.matches(cel?.expression ?? '', offered)
        } catch (error) {
          throw new Error(`${of}: selector #${at}: CEL ${(error as Error).message}`, { cause: error })
        }
      })
    if (!fits(`class ${deviceClass.metadata.name}`, deviceClass.spec.selectors ?? [])) return false
    if (!fits(`claim ${objectKey(claim)}`, selectors)) return false
    return slice.spec.perDeviceNodeSelection !== true || isPlacedOn(device, this.#input.node)
  }

  /** `holders` are claims of this pod. */
  #hasRoom(
    { capacity }: DeviceRequestAlternative,
    { id, device }: OfferedDevice,
    holders: readonly TakenDevice[],
  ): boolean {
    const more = consumptionOf(device, capacity)
    if (more === undefined) return false
    const consumed = [this.#input.ledger.consumedOf(id), ...holders.map((one) => one.consumed)]
    return hasRoom(
      device,
      more,
      consumed.filter((one) => one !== undefined),
    )
  }

  #isRepelled({ tolerations }: DeviceRequestAlternative, { device }: OfferedDevice): boolean {
    return this.#input.heedsTaints && isRepelled(device.taints, tolerations, KEEPING_AWAY)
  }

  /** Taken by a claim with exclusive use. Admin access ignores that. */
  #isGone(id: string, wanted?: DeviceRequestAlternative): boolean {
    return wanted?.isAdmin !== true && this.#input.ledger.isTaken(id)
  }

  /** Taken by this pod. */
  #isTakenByPod({ isAdmin, claimAt }: DeviceRequestAlternative, { id, device }: OfferedDevice): boolean {
    if (device.allowMultipleAllocations === true) return false
    const holders = this.#holders.get(id) ?? []
    return isAdmin ? holders.some(({ wanted }) => wanted.claimAt === claimAt) : holders.length > 0
  }

  /** Takes the device and returns a function that gives it back; undefined if it does not fit with the others. */
  #takeDevice(wanted: DeviceRequestAlternative, offered: OfferedDevice): (() => void) | undefined {
    const { id, device } = offered
    const isShared = device.allowMultipleAllocations === true
    const refill = this.#draw(offered)
    if (refill === undefined) return undefined
    if (
      !this.#fitsWithTaken(wanted, offered) ||
      (isShared && !this.#hasRoom(wanted, offered, this.#holders.get(id) ?? []))
    ) {
      refill()
      return undefined
    }
    const consumed = isShared ? consumptionOf(device, wanted.capacity) : undefined
    const taken: TakenDevice = { wanted, offered, ...(consumed !== undefined && { consumed }) }
    const own = this.taken[wanted.claimAt] as TakenDevice[]
    const holders = this.#holders.get(id) ?? []
    this.#holders.set(id, holders)
    holders.push(taken)
    own.push(taken)
    return () => {
      own.pop()
      holders.pop()
      refill()
    }
  }

  #fitsWithTaken(wanted: DeviceRequestAlternative, offered: OfferedDevice): boolean {
    if (wanted.isAll && this.#isRepelled(wanted, offered)) return false
    if (isAllowed(wanted, offered, this.taken[wanted.claimAt] as TakenDevice[])) return true
    if (!wanted.isAll) return false
    const why = `cannot add device ${offered.id} because a claim constraint would not be satisfied`
    throw new Error(`${wanted.about}: ${why}`)
  }

  /** Draws from the counters of the pool; a device with several users draws once. */
  #draw({ id, device, pool }: OfferedDevice): (() => void) | undefined {
    const { consumesCounters = [], allowMultipleAllocations = false } = device
    const { ledger } = this.#input
    const isShared = (this.#holders.get(id) ?? []).length > 0 || ledger.consumedOf(id) !== undefined
    if (consumesCounters.length === 0 || (allowMultipleAllocations && isShared)) return NOTHING_TO_REFILL
    const before = this.#counters.get(pool) ?? new Map(ledger.countersLeft(pool))
    const left = new Map(before)
    for (const { counterSet, counters = {} } of consumesCounters)
      for (const [name, { value }] of Object.entries(counters)) {
        const key = `${counterSet}/${name}`
        left.set(key, subtractQuantities(left.get(key) as Quantity, parseQuantity(value)))
      }
    if ([...left.values()].some((amount) => quantitySign(amount) < 0)) return undefined
    this.#counters.set(pool, left)
    return () => void this.#counters.set(pool, before)
  }

  /** The minimum number of devices for the requests of a claim. */
  #leastFrom(claimAt: number, at: number): number {
    const requests = this.#requests[claimAt] ?? []
    return requests
      .slice(at)
      .reduce((sum, alternatives) => sum + Math.min(...alternatives.map(({ count }) => count)), 0)
  }
}

const NOTHING_TO_REFILL = (): void => {}
