import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { CertificateSigningRequest } from '#apis/certificates/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { timeOf } from '#meta/time.ts'

import { isOver } from './cleaner.ts'

const HOUR_MS = 3_600_000
const NOW_MS = Date.UTC(2026, 0, 10)
const clock = createVirtualClock(NOW_MS - 48 * HOUR_MS)

/** A certificate from two days ago with this validity. */
const lasting = (validityMs: number): string => {
  const tools = { clock, random: secureRandom }
  const issued = createAuthority({ commonName: 'ca' }, tools).issue({ commonName: 'a', purpose: 'client', validityMs })
  return Buffer.from(issued.certificatePem).toString('base64')
}

const request = (ageMs: number, type: string, certificate: string): CertificateSigningRequest => {
  const time = timeOf(NOW_MS - ageMs)
  const condition = { type, status: 'True', lastUpdateTime: time, lastTransitionTime: time }
  return {
    metadata: { name: 'r', creationTimestamp: time },
    spec: { request: '', signerName: 's' },
    status: { ...(type !== '' && { conditions: [condition] }), ...(certificate !== '' && { certificate }) },
  }
}

describe('isOver', () => {
  const valid = lasting(1000 * HOUR_MS)
  const cases: readonly [what: string, one: readonly [number, string, string], isOver: boolean][] = [
    ['approved with its certificate, for an hour', [HOUR_MS, 'Approved', valid], false],
    ['approved with its certificate, for more than an hour', [HOUR_MS + 1000, 'Approved', valid], true],
    ['approved with an expired certificate', [1000, 'Approved', lasting(HOUR_MS)], true],
    ['approved with an invalid certificate', [1000, 'Approved', 'eA=='], false],
    ['approved without a certificate, for a day', [24 * HOUR_MS, 'Approved', ''], false],
    ['approved without a certificate, for more than a day', [24 * HOUR_MS + 1000, 'Approved', ''], true],
    ['denied for an hour', [HOUR_MS, 'Denied', ''], false],
    ['denied for more than an hour', [HOUR_MS + 1000, 'Denied', ''], true],
    ['failed for more than an hour', [HOUR_MS + 1000, 'Failed', ''], true],
    ['pending for a day', [24 * HOUR_MS, '', ''], false],
    ['pending for more than a day', [24 * HOUR_MS + 1000, '', ''], true],
  ]
  for (const [what, one, expected] of cases) {
    it(`is ${expected} when ${what}`, () => assert.equal(isOver(request(...one), NOW_MS), expected))
  }
})
