/**
 * SharedLeases: what is kept for the same time is kept by few leases, for a lease is a write of its own. What shares one goes
 * together: at the earliest when it should, and by `reuseMs` later at most.
 */
import type { Clock } from '#lib/clock.ts'
import { StorageError, type Backend, type LeaseId } from '#storage/backend.ts'

/** So that what ends together is not too much at once. */
const MOST_KEYS = 1000
/** What is kept for a short time is not kept for much longer. */
const MOST_OF_TTL = 0.05
const REUSE_MS = 60_000

export interface SharedLeasesOptions {
  readonly backend: Pick<Backend, 'grantLease'>
  readonly clock: Clock
  readonly ttlMs: number
  /** `--lease-reuse-duration-seconds`; default: a minute. */
  readonly reuseMs?: number | undefined
}

interface Shared {
  readonly lease: Promise<LeaseId>
  /** Whoever comes later would not be kept for long enough. */
  readonly untilMs: number
  keys: number
}

export class SharedLeases {
  readonly #options: SharedLeasesOptions
  readonly #reuseMs: number
  #shared: Shared | undefined

  constructor(options: SharedLeasesOptions) {
    this.#options = options
    const { reuseMs = REUSE_MS, ttlMs } = options
    this.#reuseMs = Math.max(0, Math.min(reuseMs, ttlMs * MOST_OF_TTL))
  }

  /** What `write` makes of a lease for one key more. A lease that ended before its time, as in a store that was restored, is replaced. */
  async with<T>(write: (lease: LeaseId) => Promise<T>): Promise<T> {
    const shared = this.#take()
    try {
      return await write(await shared.lease)
    } catch (error) {
      if (this.#shared === shared) this.#shared = undefined
      if (!(error instanceof StorageError) || error.code !== 'lease-not-found') throw error
    }
    return write(await this.#take().lease)
  }

  #take(): Shared {
    const { backend, clock, ttlMs } = this.#options
    const nowMs = clock.elapsed()
    if (this.#shared === undefined || nowMs > this.#shared.untilMs || this.#shared.keys >= MOST_KEYS) {
      const lease = backend.grantLease(ttlMs + this.#reuseMs)
      this.#shared = { lease, untilMs: nowMs + this.#reuseMs, keys: 0 }
    }
    this.#shared.keys++
    return this.#shared
  }
}
