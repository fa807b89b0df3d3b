/**
 * One step of a coordinated leader election, decided from the lease and its candidates: wait, ping candidates, or elect
 * the leader. A candidate votes by renewing after a ping.
 */
import type { Lease, LeaseSpec } from '#apis/coordination/v1.ts'
import type { LeaseCandidate } from '#apis/coordination/v1beta1.ts'
import { epochMsOf, microTimeOf } from '#meta/time.ts'

import {
  CANDIDATE_VALID_MS,
  isLeaseExpired,
  OLDEST_EMULATION_VERSION,
  pickOldestEmulation,
  pickStrategy,
} from './candidates.ts'

export type ElectionStep =
  | { readonly action: 'wait' }
  /** No candidate is alive: the election continues when one renews. */
  | { readonly action: 'stall' }
  /** Candidates that must prove that they are alive. */
  | { readonly action: 'ping'; readonly candidates: readonly LeaseCandidate[] }
  /** The live candidates are known. No holder: another controller implements the strategy. */
  | { readonly action: 'elect'; readonly strategy: string; readonly holder: string | undefined }

export interface Election {
  readonly lease: Lease | undefined
  /** Those that have not expired. */
  readonly candidates: readonly LeaseCandidate[]
  readonly nowMs: number
}

/** The time for answering a ping, and the time for which the answer counts. */
const ELECTION_MS = 5000

/** For a leader that has not renewed yet. */
const LEASE_SECONDS = 5

/** Throws if no election is possible. */
export function planElection(election: Election): ElectionStep {
  const { candidates, nowMs } = election
  if (candidates.length === 0 || !isNeeded(election)) return { action: 'wait' }
  const silent = candidates.filter((candidate) => !hasRenewedSince(candidate, nowMs - ELECTION_MS))
  const pinged = silent.filter((candidate) => !isBeingPinged(candidate, nowMs) && needsPing(candidate, nowMs))
  if (pinged.length > 0) return { action: 'ping', candidates: pinged }
  if (candidates.some((candidate) => isBeingPinged(candidate, nowMs))) return { action: 'wait' }
  const alive = candidates.filter((candidate) => !silent.includes(candidate))
  if (alive.length === 0) return { action: 'stall' }
  const strategy = pickStrategy(alive)
  if (strategy !== OLDEST_EMULATION_VERSION) return { action: 'elect', strategy, holder: undefined }
  const leader = pickOldestEmulation(alive)
  if (leader === undefined) throw new Error('should not happen, could not find suitable electee')
  return { action: 'elect', strategy, holder: leader.metadata.name ?? '' }
}

function isNeeded({ lease, candidates, nowMs }: Election): boolean {
  if (lease === undefined || isLeaseExpired(lease.spec, nowMs) || (lease.spec.holderIdentity ?? '') === '') return true
  // All candidates are pinged every 15 minutes; silent ones are deleted after 30.
  if (candidates.some((candidate) => !hasRenewedSince(candidate, nowMs - CANDIDATE_VALID_MS / 2))) return true
  if (pickStrategy(candidates) !== OLDEST_EMULATION_VERSION) return false
  const best = pickOldestEmulation(candidates)
  return best !== undefined && best.metadata.name !== lease.spec.holderIdentity
}

function hasRenewedSince({ spec: { renewTime } }: LeaseCandidate, sinceMs: number): boolean {
  return renewTime !== undefined && epochMsOf(renewTime) > sinceMs
}

/** Pinged recently, without an answer. */
function isBeingPinged(candidate: LeaseCandidate, nowMs: number): boolean {
  const { pingTime } = candidate.spec
  return pingTime !== undefined && epochMsOf(pingTime) + ELECTION_MS > nowMs && !hasAnswered(candidate)
}

/** Never pinged, or it has answered the last ping long ago. A candidate that did not answer gets no other ping. */
function needsPing(candidate: LeaseCandidate, nowMs: number): boolean {
  const { pingTime } = candidate.spec
  if (pingTime === undefined) return true
  return epochMsOf(pingTime) + ELECTION_MS <= nowMs && hasAnswered(candidate)
}

function hasAnswered({ spec: { pingTime, renewTime } }: LeaseCandidate): boolean {
  return pingTime === undefined || (renewTime !== undefined && epochMsOf(renewTime) >= epochMsOf(pingTime))
}

export interface Elected {
  readonly strategy: string
  readonly holder: string | undefined
}

/** The lease for a leader where there is none. */
export function planNewLease({ strategy, holder }: Elected, nowMs: number): LeaseSpec {
  return {
    strategy,
    leaseDurationSeconds: LEASE_SECONDS,
    renewTime: microTimeOf(nowMs),
    ...(holder !== undefined && { holderIdentity: holder }),
  }
}

/**
 * The lease after an election; the same object if nothing changes. A live leader is not replaced: it sees the preferred
 * holder and lets its lease expire.
 */
export function planLease(spec: LeaseSpec, { strategy, holder }: Elected, nowMs: number): LeaseSpec {
  const next = spec.strategy === strategy ? spec : { ...spec, strategy }
  const current = spec.holderIdentity ?? ''
  if (holder === undefined || current === holder) return next
  if (current !== '' && !isLeaseExpired(spec, nowMs)) {
    return spec.preferredHolder === holder ? next : { ...next, preferredHolder: holder }
  }
  const { preferredHolder: _, acquireTime: __, ...rest } = next
  return {
    ...rest,
    holderIdentity: holder,
    renewTime: microTimeOf(nowMs),
    leaseDurationSeconds: LEASE_SECONDS,
  }
}
