/**
 * Expires the leases of a store (LeaseTimers). After a restart each lease starts again, so a lease may live longer than
 * promised but never shorter.
 */
import type { Clock, Timer } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'

import { StorageError, type LeaseId } from './backend.ts'

interface Lease {
  readonly ttlMs: number
  timer: Timer
}

/** Ids are random so that one from before a restore or restart never means another lease. */
const ID_BITS = 48

export class LeaseTimers {
  readonly #clock: Clock
  readonly #expired: (lease: LeaseId) => void
  readonly #leases = new Map<LeaseId, Lease>()

  /** `expired` is called once per expired lease, which is unknown afterwards. */
  constructor(clock: Clock, expired: (lease: LeaseId) => void) {
    this.#clock = clock
    this.#expired = expired
  }

  /** A new id, not yet added. */
  draw(random: Random): LeaseId {
    for (;;) {
      const id = random.int(2 ** ID_BITS) + 1
      if (!this.#leases.has(id)) return id
    }
  }

  add(lease: LeaseId, ttlMs: number): void {
    this.#leases.set(lease, { ttlMs, timer: this.#arm(lease, ttlMs) })
  }

  has(lease: LeaseId): boolean {
    return this.#leases.has(lease)
  }

  /** Throws `lease-not-found`. */
  renew(lease: LeaseId): void {
    const found = this.#leases.get(lease)
    if (found === undefined) throw leaseNotFound(lease)
    found.timer.cancel()
    found.timer = this.#arm(lease, found.ttlMs)
  }

  /** Throws `lease-not-found`. */
  remove(lease: LeaseId): void {
    const found = this.#leases.get(lease)
    if (found === undefined) throw leaseNotFound(lease)
    found.timer.cancel()
    this.#leases.delete(lease)
  }

  /** Stops every timer; the leases themselves stay in the store. */
  close(): void {
    for (const { timer } of this.#leases.values()) timer.cancel()
    this.#leases.clear()
  }

  /** Each live lease with its time to live. */
  *entries(): Generator<[LeaseId, number]> {
    for (const [lease, { ttlMs }] of this.#leases) yield [lease, ttlMs]
  }

  #arm(lease: LeaseId, ttlMs: number): Timer {
    const expire = (): void => {
      this.#leases.delete(lease)
      this.#expired(lease)
    }
    return this.#clock.after(ttlMs, expire, { background: true })
  }
}

/** Throws RangeError for an invalid time to live. */
export function checkTtl(ttlMs: number): void {
  if (!(ttlMs > 0 && ttlMs < Infinity)) throw new RangeError(`A lease must last more than 0 ms, not ${ttlMs}`)
}

export function leaseNotFound(lease: LeaseId): StorageError {
  return new StorageError('lease-not-found', `Lease ${lease} has ended or never was; grant a new one`)
}
