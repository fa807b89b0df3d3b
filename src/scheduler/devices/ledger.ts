/**
 * Tracks the allocated devices of all claims. A claim counts as soon as the scheduler has chosen its devices, before
 * the API server stores the allocation. So no device is allocated twice.
 */
import type { AllocationResult, DeviceRequestAllocationResult, ResourceClaim } from '#apis/resource/v1.ts'
import { addQuantities, isZeroQuantity, parseQuantity, type Quantity, subtractQuantities } from '#meta/quantity.ts'

import { deviceId, type Pool } from './inventory.ts'

/** The use of one device. */
interface DeviceUse {
  /** Claims with exclusive use. */
  whole: number
  shares: number
  /** The consumed amount of each capacity. */
  readonly consumed: Map<string, Quantity>
}

export class Ledger {
  /** By claim: the stored allocation and the promised one. The stored one wins. */
  readonly #stored = new Map<string, AllocationResult>()
  readonly #promised = new Map<string, AllocationResult>()
  readonly #counted = new Map<string, AllocationResult>()
  readonly #uses = new Map<string, DeviceUse>()
  readonly #counters = new WeakMap<Pool, { readonly version: number; readonly left: ReadonlyMap<string, Quantity> }>()
  /** Increases with every change. */
  version = 0

  observe({ metadata: { uid = '' }, status }: ResourceClaim): void {
    if (status.allocation === undefined) this.#stored.delete(uid)
    else {
      this.#stored.set(uid, status.allocation)
      this.#promised.delete(uid)
    }
    this.#recount(uid)
  }

  gone({ metadata: { uid = '' } }: ResourceClaim): void {
    this.#stored.delete(uid)
    this.release(uid)
  }

  promise(uid: string, allocation: AllocationResult): void {
    this.#promised.set(uid, allocation)
    this.#recount(uid)
  }

  /** The promise was written and seen, or is withdrawn. */
  release(uid: string): void {
    this.#promised.delete(uid)
    this.#recount(uid)
  }

  promisedTo(uid: string): AllocationResult | undefined {
    return this.#promised.get(uid)
  }

  /** Allocated exclusively. */
  isTaken(id: string): boolean {
    return (this.#uses.get(id)?.whole ?? 0) > 0
  }

  /** Undefined: unused. */
  consumedOf(id: string): ReadonlyMap<string, Quantity> | undefined {
    const consumed = this.#uses.get(id)?.consumed
    return consumed === undefined || consumed.size === 0 ? undefined : consumed
  }

  /** The remaining counters of a pool; negative if its driver has reduced them. */
  countersLeft(pool: Pool): ReadonlyMap<string, Quantity> {
    const known = this.#counters.get(pool)
    if (known?.version === this.version) return known.left
    const left = new Map(pool.counters)
    for (const { id, device } of [...pool.devices, ...pool.elsewhere]) {
      if (!this.#uses.has(id)) continue
      for (const { counterSet, counters = {} } of device.consumesCounters ?? [])
        for (const [name, { value }] of Object.entries(counters)) {
          const key = `${counterSet}/${name}`
          left.set(key, subtractQuantities(left.get(key) as Quantity, parseQuantity(value)))
        }
    }
    this.#counters.set(pool, { version: this.version, left })
    return left
  }

  #recount(uid: string): void {
    const before = this.#counted.get(uid)
    const after = this.#stored.get(uid) ?? this.#promised.get(uid)
    if (before === after) return
    this.version++
    for (const one of usedBy(before)) this.#count(one, -1)
    for (const one of usedBy(after)) this.#count(one, 1)
    if (after === undefined) this.#counted.delete(uid)
    else this.#counted.set(uid, after)
  }

  #count({ driver, pool, device, shareID, consumedCapacity }: DeviceRequestAllocationResult, by: 1 | -1): void {
    const id = deviceId(driver, pool, device)
    const use = this.#uses.get(id) ?? { whole: 0, shares: 0, consumed: new Map<string, Quantity>() }
    this.#uses.set(id, use)
    if (shareID === undefined) use.whole += by
    else {
      use.shares += by
      for (const [name, text] of Object.entries(consumedCapacity ?? {})) consume(use.consumed, name, text, by)
    }
    if (use.whole === 0 && use.shares === 0) this.#uses.delete(id)
  }
}

/** Admin access does not count as use. */
function usedBy(allocation: AllocationResult | undefined): readonly DeviceRequestAllocationResult[] {
  return (allocation?.devices.results ?? []).filter(({ adminAccess }) => adminAccess !== true)
}

function consume(consumed: Map<string, Quantity>, name: string, text: string, by: 1 | -1): void {
  const amount = parseQuantity(text)
  const before = consumed.get(name)
  if (before === undefined) consumed.set(name, amount)
  else consumed.set(name, by === 1 ? addQuantities(before, amount) : subtractQuantities(before, amount))
  if (isZeroQuantity(consumed.get(name) as Quantity)) consumed.delete(name)
}
