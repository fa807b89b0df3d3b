import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { LeaseCandidate, LeaseCandidateSpec } from '#apis/coordination/v1beta1.ts'

import { isCandidateExpired, isLeaseExpired, pickOldestEmulation, pickStrategy } from './candidates.ts'

const candidate = (
  name: string,
  spec: Partial<LeaseCandidateSpec>,
  created = '2026-01-01T00:00:00Z',
): LeaseCandidate => ({
  kind: 'LeaseCandidate',
  apiVersion: 'coordination.k8s.io/v1beta1',
  metadata: { name, creationTimestamp: created },
  spec: { leaseName: 'l', binaryVersion: '1.36.0', strategy: 'OldestEmulationVersion', ...spec },
})

describe('pickOldestEmulation() of lease candidates', () => {
  const older = candidate('older', { emulationVersion: '1.35.0' })
  const newer = candidate('newer', { emulationVersion: '1.36.0' })
  const newerBinary = candidate('binary', { emulationVersion: '1.35.0', binaryVersion: '1.37.0' })
  const younger = candidate('younger', { emulationVersion: '1.35.0' }, '2026-01-02T00:00:00Z')
  const table: readonly (readonly [string, LeaseCandidate[], string | undefined])[] = [
    ['no candidate from an empty list', [], undefined],
    ['the candidate with the oldest emulation version', [newer, older], 'older'],
    ['the candidate with the oldest binary version if emulation versions are equal', [newerBinary, older], 'older'],
    ['the candidate created first if all versions are equal', [younger, older], 'older'],
    [
      'no candidate if none has valid versions',
      [candidate('x', {}), candidate('y', { emulationVersion: 'x' })],
      undefined,
    ],
    [
      'the oldest version in numerical order',
      [candidate('a', { emulationVersion: '1.9.0' }), candidate('b', { emulationVersion: '1.10.0' })],
      'a',
    ],
  ]
  for (const [what, candidates, name] of table) {
    it(`picks ${what}`, () => assert.equal(pickOldestEmulation(candidates)?.metadata.name, name))
  }
})

describe('pickStrategy() of lease candidates', () => {
  it('picks the strategy of the candidate with the newest binary', () => {
    const mixed = [candidate('a', {}), candidate('b', { binaryVersion: '1.37.0', strategy: 'ex.io/own' })]
    assert.equal(pickStrategy(mixed), 'ex.io/own')
    assert.equal(pickStrategy(mixed.toReversed()), 'ex.io/own')
  })

  it('throws if candidates of the same version disagree', () => {
    assert.throws(() => pickStrategy([candidate('a', {}), candidate('b', { strategy: 'ex.io/own' })]), {
      message:
        'candidates "a", "b" at same binary version but received differing strategies OldestEmulationVersion, ex.io/own',
    })
    assert.throws(() => pickStrategy([]), { message: 'no candidates' })
  })
})

describe('expiry time in leader election', () => {
  const renewTime = '2026-01-01T00:00:00.000000Z'
  const nowMs = Date.parse(renewTime)
  it('is 30 minutes after the last renewal for a candidate', () => {
    assert.equal(isCandidateExpired(candidate('a', { renewTime }), nowMs + 1_800_000), false)
    assert.equal(isCandidateExpired(candidate('a', { renewTime }), nowMs + 1_800_001), true)
    assert.equal(isCandidateExpired(candidate('a', {}), nowMs), true)
  })
  it('is the lease duration after the last renewal for a lease', () => {
    assert.equal(isLeaseExpired({ renewTime, leaseDurationSeconds: 15 }, nowMs + 15_000), false)
    assert.equal(isLeaseExpired({ renewTime, leaseDurationSeconds: 15 }, nowMs + 15_001), true)
    assert.equal(isLeaseExpired({ leaseDurationSeconds: 15 }, nowMs), true)
  })
})
