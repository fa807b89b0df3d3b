/**
 * SharedLeases: objects with the same time to live share leases, because each lease is a separate write. Objects of one
 * lease expire together: never early, and at most `reuseMs` late.
 */
import type { Clock } from '#lib/clock.ts'
import { StorageError, type Backend, type LeaseId } from '#storage/backend.ts'

/** The maximum number of keys per lease, so that not too many expire at once. */
const MOST_KEYS = 1000
/** The relative limit of the extension for short lifetimes. */
const MOST_OF_TTL = 0.05
const REUSE_MS = 60_000

export interface SharedLeasesOptions {
  readonly backend: Pick<Backend, 'grantLease'>
  readonly clock: Clock
  readonly ttlMs: number
  /** `--lease-reuse-duration-seconds`; default: a minute. */
  readonly reuseMs?: number | undefined
}

interface SharedLease {
  readonly lease: Promise<LeaseId>
  /** The time after which the lease would be too short for further keys. */
  readonly untilMs: number
  keys: number
}

export class SharedLeases {
  readonly #options: SharedLeasesOptions
  readonly #reuseMs: number
  #shared: SharedLease | undefined

  constructor(options: SharedLeasesOptions) {
    this.#options = options
    const { reuseMs = REUSE_MS, ttlMs } = options
    this.#reuseMs = Math.max(0, Math.min(reuseMs, ttlMs * MOST_OF_TTL))
  }

  /** Calls `write` with a lease for one more key. A lease that expired early, as in a restored store, is replaced. */
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

  #take(): SharedLease {
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
