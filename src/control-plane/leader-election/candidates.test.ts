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

describe('pickOldestEmulation', () => {
  const older = candidate('older', { emulationVersion: '1.35.0' })
  const newer = candidate('newer', { emulationVersion: '1.36.0' })
  const newerBinary = candidate('binary', { emulationVersion: '1.35.0', binaryVersion: '1.37.0' })
  const younger = candidate('younger', { emulationVersion: '1.35.0' }, '2026-01-02T00:00:00Z')
  const table: readonly (readonly [string, LeaseCandidate[], string | undefined])[] = [
    ['no candidate from an empty list', [], undefined],
    ['the oldest emulation', [newer, older], 'older'],
    ['the oldest binary of the same emulation', [newerBinary, older], 'older'],
    ['the oldest candidate of equal versions', [younger, older], 'older'],
    ['no candidate without valid versions', [candidate('x', {}), candidate('y', { emulationVersion: 'x' })], undefined],
    [
      'the oldest version by number, not by text',
      [candidate('a', { emulationVersion: '1.9.0' }), candidate('b', { emulationVersion: '1.10.0' })],
      'a',
    ],
  ]
  for (const [what, candidates, name] of table) {
    it(`picks ${what}`, () => assert.equal(pickOldestEmulation(candidates)?.metadata.name, name))
  }
})

describe('pickStrategy', () => {
  it('picks the strategy of the newest binary', () => {
    const mixed = [candidate('a', {}), candidate('b', { binaryVersion: '1.37.0', strategy: 'ex.io/own' })]
    assert.equal(pickStrategy(mixed), 'ex.io/own')
    assert.equal(pickStrategy(mixed.toReversed()), 'ex.io/own')
  })

  it('throws if candidates disagree', () => {
    assert.throws(() => pickStrategy([candidate('a', {}), candidate('b', { strategy: 'ex.io/own' })]), {
      message:
        'candidates "a", "b" at same binary version but received differing strategies OldestEmulationVersion, ex.io/own',
    })
    assert.throws(() => pickStrategy([]), { message: 'no candidates' })
  })
})

describe('expiry', () => {
  const renewTime = '2026-01-01T00:00:00.000000Z'
  const nowMs = Date.parse(renewTime)
  it('is 30 minutes after the last renewal of a candidate', () => {
    assert.equal(isCandidateExpired(candidate('a', { renewTime }), nowMs + 1_800_000), false)
    assert.equal(isCandidateExpired(candidate('a', { renewTime }), nowMs + 1_800_001), true)
    assert.equal(isCandidateExpired(candidate('a', {}), nowMs), true)
  })
  it('is the duration of a lease', () => {
    assert.equal(isLeaseExpired({ renewTime, leaseDurationSeconds: 15 }, nowMs + 15_000), false)
    assert.equal(isLeaseExpired({ renewTime, leaseDurationSeconds: 15 }, nowMs + 15_001), true)
    assert.equal(isLeaseExpired({ leaseDurationSeconds: 15 }, nowMs), true)
  })
})
