/**
 * Leader election on a Lease, as in client-go. At most one candidate leads, as long as clocks drift by less than lease
 * duration minus renew deadline. Candidates compare no clocks: each measures how long the Lease has not changed. Writes
 * use optimistic locking.
 */
import { type Lease, Leases, type LeaseSpec } from '#apis/coordination/v1.ts'
import { jitteredMs } from '#lib/backoff.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import { isConflict, isNotFound } from '#meta/status.ts'
import { microTimeOf } from '#meta/time.ts'

import type { ApiClient } from './api-client.ts'

export interface LeaderElectionOptions {
  readonly client: ApiClient
  readonly random: Random
  readonly namespace: string
  readonly name: string
  /** Unique among candidates. */
  readonly identity: string
  /** How long others wait before they take over an unchanged record. Default 15 s. */
  readonly leaseDurationMs?: number
  /** How long a leader goes on without a renewal. Default 10 s; less than the lease duration. */
  readonly renewDeadlineMs?: number
  /** Between two attempts. Default 2 s. */
  readonly retryPeriodMs?: number
  /**
   * Whether the API server names the leader (CoordinatedLeaderElection): the candidate then renews the record, and
   * never creates it or takes it over. A LeaseCandidate named like `identity` must exist: see lease-candidate.ts.
   * Default: false.
   */
  readonly coordinated?: boolean
  /** Whether to release the record when the work ends, so that another candidate need not wait. Default: true. */
  readonly releases?: boolean
  /** Called when the leader changes, including to us. */
  readonly onLeader?: (identity: string) => void
  readonly onError?: (error: unknown) => void
}

/** The lease expired or another candidate has it. */
export class LeadershipLost extends Error {
  override readonly name = 'LeadershipLost'
}

/**
 * Acquires the lease, then does the work, and aborts the work's signal when it loses the lease. `leads` tells at any
 * moment whether the last renewal is still valid. Resolves when the work is done or `signal` is aborted; rejects with
 * LeadershipLost.
 */
export async function lead(
  options: LeaderElectionOptions,
  signal: AbortSignal,
  work: (signal: AbortSignal, leads: () => boolean) => Promise<void>,
): Promise<void> {
  const candidate = new Candidate(options)
  await candidate.acquire(signal)
  if (signal.aborted) return
  const leading = new AbortController()
  const working = AbortSignal.any([signal, leading.signal])
  const done = work(working, () => candidate.leads)
  const renewing = candidate.renew(AbortSignal.any([signal, leading.signal]))
  try {
    const isLost = await Promise.race([done.then(() => false), renewing])
    if (isLost && !signal.aborted) throw new LeadershipLost('leader election lost')
  } finally {
    leading.abort()
    await Promise.allSettled([done, renewing])
    if (options.releases !== false) await candidate.release()
  }
}

const RETRY_JITTER = 1.2
const RELEASE_TRIES = 3

function unlessConflict(error: unknown): false {
  if (!isConflict(error)) throw error
  return false
}

class Candidate {
  readonly #options: LeaderElectionOptions
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #deadlineMs: number
  readonly #retryMs: number
  #seen: Lease | undefined
  #seenAtMs = 0
  #renewedMs = 0
  #reportedLeader = ''

  constructor(options: LeaderElectionOptions) {
    this.#options = options
    this.#clock = options.client.clock
    this.#leaseMs = options.leaseDurationMs ?? 15_000
    this.#deadlineMs = options.renewDeadlineMs ?? 10_000
    this.#retryMs = options.retryPeriodMs ?? 2000
  }

  /** Whether the last renewal is within the renew deadline. */
  get leads(): boolean {
    return this.#clock.elapsed() - this.#renewedMs < this.#deadlineMs
  }

  async acquire(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !(await this.#tryOnce(signal))) {
      const pauseMs = jitteredMs(this.#options.random, this.#retryMs, RETRY_JITTER)
      await sleep(this.#clock, pauseMs, signal).catch(() => undefined)
    }
  }

  /** Resolves to true if the deadline passed without a renewal, to false if the signal was aborted. */
  async renew(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      await sleep(this.#clock, this.#retryMs, signal).catch(() => undefined)
      if (signal.aborted) return false
      // A process that was suspended notices the loss here, before it handles any event.
      if (!this.leads) return true
      const leftMs = this.#renewedMs + this.#deadlineMs - this.#clock.elapsed()
      const deadline = AbortSignal.any([signal, this.#after(leftMs)])
      if (!(await this.#tryOnce(deadline)) && !this.leads) return true
    }
    return false
  }

  /**
   * Best effort: the next leader waits a second instead of the lease duration. Reads the record again on a conflict,
   * because an aborted renewal may have succeeded.
   */
  async release(): Promise<void> {
    const { client, identity, onError } = this.#options
    const signal = this.#after(this.#deadlineMs)
    try {
      for (let tries = 0; tries < RELEASE_TRIES; tries++) {
        const lease = await this.#read(signal)
        if (lease === undefined || lease.spec.holderIdentity !== identity) return
        const now = microTimeOf(this.#clock.now())
        const given = { holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now }
        const done = client.update(Leases, { ...lease, spec: { ...lease.spec, ...given } }, { signal })
        if (await done.then(() => true, unlessConflict)) return
      }
    } catch (error) {
      onError?.(error)
    }
  }

  #after(delayMs: number): AbortSignal {
    const control = new AbortController()
    this.#clock.after(Math.max(0, delayMs), () => control.abort(), { background: true })
    return control.signal
  }

  async #tryOnce(signal: AbortSignal): Promise<boolean> {
    try {
      const requestedMs = this.#clock.elapsed()
      const isOurs = await this.#acquireOrRenew(signal)
      if (isOurs) this.#renewedMs = requestedMs
      this.#reportLeader()
      return isOurs
    } catch (error) {
      if (!signal.aborted) this.#options.onError?.(error)
      return false
    }
  }

  async #acquireOrRenew(signal: AbortSignal): Promise<boolean> {
    const { client, namespace, name, identity, coordinated = false } = this.#options
    const now = microTimeOf(this.#clock.now())
    const mine: LeaseSpec = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.floor(this.#leaseMs / 1000),
      acquireTime: now,
      renewTime: now,
      leaseTransitions: 0,
    }
    const current = await this.#read(signal)
    if (coordinated && !this.#mayRenew(current)) return false
    if (current === undefined) {
      this.#observe(await client.create(Leases, { metadata: { namespace, name }, spec: mine }, { signal }))
      return true
    }
    this.#observe(current)
    const { holderIdentity = '', acquireTime, leaseTransitions = 0 } = current.spec
    const isOurs = holderIdentity === identity
    if (!isOurs && holderIdentity !== '' && !this.#hasEnded(current)) return false
    const kept: LeaseSpec = isOurs
      ? { leaseTransitions, ...(acquireTime !== undefined && { acquireTime }) }
      : { leaseTransitions: leaseTransitions + 1 }
    this.#observe(await client.update(Leases, { ...current, spec: { ...current.spec, ...mine, ...kept } }, { signal }))
    return true
  }

  /** Whether the server chose this candidate and prefers no other. */
  #mayRenew(current: Lease | undefined): boolean {
    if (current === undefined) return false
    this.#observe(current)
    const { holderIdentity, preferredHolder = '' } = current.spec
    return holderIdentity === this.#options.identity && preferredHolder === '' && !this.#hasEnded(current)
  }

  async #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, namespace, name } = this.#options
    try {
      return await client.get(Leases, { namespace, name }, { signal })
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  #observe(lease: Lease): void {
    const isSame = this.#seen !== undefined && sameRecord(this.#seen.spec, lease.spec)
    this.#seen = lease
    if (!isSame) this.#seenAtMs = this.#clock.elapsed()
  }

  #hasEnded({ spec }: Lease): boolean {
    return this.#clock.elapsed() >= this.#seenAtMs + (spec.leaseDurationSeconds ?? 0) * 1000
  }

  #reportLeader(): void {
    const { holderIdentity = '' } = this.#seen?.spec ?? {}
    if (holderIdentity === this.#reportedLeader) return
    this.#reportedLeader = holderIdentity
    this.#options.onLeader?.(holderIdentity)
  }
}

function sameRecord(one: LeaseSpec, other: LeaseSpec): boolean {
  return (
    one.holderIdentity === other.holderIdentity &&
    one.renewTime === other.renewTime &&
    one.acquireTime === other.acquireTime &&
    one.leaseDurationSeconds === other.leaseDurationSeconds &&
    one.leaseTransitions === other.leaseTransitions
  )
}
