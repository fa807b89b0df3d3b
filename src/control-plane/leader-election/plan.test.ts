import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Lease, LeaseSpec } from '#apis/coordination/v1.ts'
import type { LeaseCandidate, LeaseCandidateSpec } from '#apis/coordination/v1beta1.ts'
import { microTimeOf } from '#meta/time.ts'

import { type ElectionStep, planElection, planLease, planNewLease } from './plan.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
/** Seconds ago. */
const ago = (seconds: number): string => microTimeOf(NOW_MS - seconds * 1000)

function candidate(name: string, renewed: number, more: Partial<LeaseCandidateSpec> = {}): LeaseCandidate {
  const versions = { binaryVersion: '1.36.4', emulationVersion: '1.36.0', strategy: 'OldestEmulationVersion' }
  return {
    kind: 'LeaseCandidate',
    apiVersion: 'coordination.k8s.io/v1beta1',
    metadata: { name, namespace: 'ns' },
    spec: { leaseName: 'l', ...versions, renewTime: ago(renewed), ...more },
  }
}

const lease = (spec: LeaseSpec): Lease => ({
  kind: 'Lease',
  apiVersion: 'coordination.k8s.io/v1',
  metadata: { name: 'l', namespace: 'ns' },
  spec,
})
const leaseOf = (by: string): Lease => lease({ holderIdentity: by, renewTime: ago(1), leaseDurationSeconds: 15 })

/** `wait`, `ping a b`, `elect a`. */
function text(step: ElectionStep): string {
  if (step.action === 'ping') return `ping ${step.candidates.map(({ metadata }) => metadata.name).join(' ')}`
  return step.action === 'elect' ? `elect ${step.holder ?? 'no one'}` : step.action
}

describe('planElection() for a coordinated lease', () => {
  const old = { emulationVersion: '1.35.0' }
  const table: readonly (readonly [string, Lease | undefined, LeaseCandidate[], string])[] = [
    ['there are no candidates', undefined, [], 'wait'],
    ['there is no lease and a candidate has just renewed', undefined, [candidate('a', 1)], 'elect a'],
    ['there is no lease and candidates are silent', undefined, [candidate('a', 6), candidate('b', 1)], 'ping a'],
    ['a ping is not answered yet', undefined, [candidate('a', 60, { pingTime: ago(2) }), candidate('b', 1)], 'wait'],
    ['a ping was not answered', undefined, [candidate('a', 60, { pingTime: ago(6) }), candidate('b', 1)], 'elect b'],
    ['no ping was answered', undefined, [candidate('a', 60, { pingTime: ago(6) })], 'stall'],
    ['an old ping was answered', undefined, [candidate('a', 60, { pingTime: ago(61) })], 'ping a'],
    ['the best candidate leads', leaseOf('a'), [candidate('a', 60), candidate('b', 60)], 'wait'],
    ['a better candidate exists', leaseOf('a'), [candidate('a', 60), candidate('b', 1, old)], 'ping a'],
    [
      'a better candidate exists and all are alive',
      leaseOf('a'),
      [candidate('a', 1), candidate('b', 1, old)],
      'elect b',
    ],
    ['the lease has no holder', lease({ renewTime: ago(1), leaseDurationSeconds: 15 }), [candidate('a', 1)], 'elect a'],
    ['the lease is expired', lease({ ...leaseOf('a').spec, renewTime: ago(16) }), [candidate('b', 1)], 'elect b'],
    ['a candidate was silent for 15 minutes', leaseOf('a'), [candidate('a', 900), candidate('b', 60)], 'ping a b'],
    ['the candidates use another strategy', leaseOf('x'), [candidate('a', 60, { strategy: 'ex.io/own' })], 'wait'],
    ['a third-party strategy elects', undefined, [candidate('a', 1, { strategy: 'ex.io/own' })], 'elect no one'],
  ]
  for (const [what, current, candidates, expected] of table) {
    it(`returns "${expected}" when ${what}`, () =>
      assert.equal(text(planElection({ lease: current, candidates, nowMs: NOW_MS })), expected))
  }
})

describe('lease after a coordinated election', () => {
  const elected = { strategy: 'OldestEmulationVersion', holder: 'b' }
  const mine = { strategy: 'OldestEmulationVersion', leaseDurationSeconds: 5, renewTime: ago(0), holderIdentity: 'b' }
  const live: LeaseSpec = {
    ...leaseOf('a').spec,
    strategy: elected.strategy,
    acquireTime: ago(60),
    leaseTransitions: 3,
  }

  it('is valid for five seconds if it is new', () => assert.deepEqual(planNewLease(elected, NOW_MS), mine))

  const table: readonly (readonly [string, LeaseSpec, LeaseSpec])[] = [
    ['keeps a live holder and sets preferredHolder', live, { ...live, preferredHolder: 'b' }],
    [
      'replaces an expired holder',
      { ...live, renewTime: ago(16), preferredHolder: 'b' },
      { ...mine, leaseTransitions: 3 },
    ],
    ['gets its first holder', { ...live, holderIdentity: '' }, { ...mine, leaseTransitions: 3 }],
  ]
  for (const [what, before, after] of table) {
    it(what, () => assert.deepEqual(planLease(before, elected, NOW_MS), after))
  }

  it('stays the same object if the elected leader is the same', () => {
    const same = { ...live, holderIdentity: 'b' }
    assert.equal(planLease(same, elected, NOW_MS), same)
    const marked = { ...live, preferredHolder: 'b' }
    assert.equal(planLease(marked, elected, NOW_MS), marked)
  })
})
