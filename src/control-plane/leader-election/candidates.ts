/**
 * Candidates of a coordinated leader election: their validity, and the choice of the leader. Upstream's
 * pkg/controlplane/controller/leaderelection, v1.36.
 */
import type { LeaseSpec } from '#apis/coordination/v1.ts'
import type { LeaseCandidate } from '#apis/coordination/v1beta1.ts'
import { goQuote } from '#lib/go/text.ts'
import { compareSemanticVersions, parseSemanticVersion, type SemanticVersion } from '#lib/semver.ts'
import { epochMsOf } from '#meta/time.ts'

export const OLDEST_EMULATION_VERSION = 'OldestEmulationVersion'

/** A candidate that does not renew for so long is deleted. */
export const CANDIDATE_VALID_MS: number = 30 * 60_000

const NO_VERSION: SemanticVersion = { numbers: [0n, 0n, 0n], preRelease: [] }

/** The strategy of the candidates with the newest binary. Throws if they disagree. */
export function pickStrategy(candidates: readonly LeaseCandidate[]): string {
  const [first, ...others] = candidates
  if (first === undefined) throw new Error('no candidates')
  let newest = first
  for (const candidate of others) {
    const order = compareSemanticVersions(binaryOf(newest), binaryOf(candidate))
    if (order < 0) newest = candidate
    else if (order === 0 && candidate.spec.strategy !== newest.spec.strategy) throw disagreement(newest, candidate)
  }
  return newest.spec.strategy ?? ''
}

function disagreement(one: LeaseCandidate, other: LeaseCandidate): Error {
  const names = [one, other].map(({ metadata }) => goQuote(metadata.name ?? '')).join(', ')
  const strategies = [one, other].map(({ spec }) => spec.strategy ?? '').join(', ')
  return new Error(`candidates ${names} at same binary version but received differing strategies ${strategies}`)
}

/** The candidate that emulates the oldest version; of those the one with the oldest binary, then the eldest. */
export function pickOldestEmulation(candidates: readonly LeaseCandidate[]): LeaseCandidate | undefined {
  const [best] = candidates.filter(({ spec }) => hasVersions(spec)).toSorted(compareCandidates)
  return best
}

function hasVersions({ emulationVersion = '', binaryVersion }: LeaseCandidate['spec']): boolean {
  return parseSemanticVersion(emulationVersion) !== undefined && parseSemanticVersion(binaryVersion) !== undefined
}

function compareCandidates(a: LeaseCandidate, b: LeaseCandidate): number {
  return (
    compareSemanticVersions(emulationOf(a), emulationOf(b)) ||
    compareSemanticVersions(binaryOf(a), binaryOf(b)) ||
    createdMs(a) - createdMs(b)
  )
}

function createdMs({ metadata: { creationTimestamp } }: LeaseCandidate): number {
  return typeof creationTimestamp === 'string' ? epochMsOf(creationTimestamp) : 0
}

function binaryOf({ spec }: LeaseCandidate): SemanticVersion {
  return parseSemanticVersion(spec.binaryVersion) ?? NO_VERSION
}

function emulationOf({ spec }: LeaseCandidate): SemanticVersion {
  return parseSemanticVersion(spec.emulationVersion ?? '') ?? NO_VERSION
}

export function isCandidateExpired({ spec: { renewTime } }: LeaseCandidate, nowMs: number): boolean {
  return renewTime === undefined || epochMsOf(renewTime) + CANDIDATE_VALID_MS < nowMs
}

export function isLeaseExpired({ renewTime, leaseDurationSeconds }: LeaseSpec, nowMs: number): boolean {
  if (renewTime === undefined || leaseDurationSeconds === undefined) return true
  return epochMsOf(renewTime) + leaseDurationSeconds * 1000 < nowMs
}
