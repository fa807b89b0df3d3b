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

describe('cleanup of CertificateSigningRequests', () => {
  const valid = lasting(1000 * HOUR_MS)
  const cases: readonly [what: string, one: readonly [number, string, string], isOver: boolean][] = [
    ['that was approved with a certificate an hour ago', [HOUR_MS, 'Approved', valid], false],
    ['that was approved with a certificate more than an hour ago', [HOUR_MS + 1000, 'Approved', valid], true],
    ['that was approved and whose certificate is expired', [1000, 'Approved', lasting(HOUR_MS)], true],
    ['that was approved and whose certificate is unparsable', [1000, 'Approved', 'eA=='], false],
    ['that was approved without a certificate a day ago', [24 * HOUR_MS, 'Approved', ''], false],
    ['that was approved without a certificate more than a day ago', [24 * HOUR_MS + 1000, 'Approved', ''], true],
    ['that was denied an hour ago', [HOUR_MS, 'Denied', ''], false],
    ['that was denied more than an hour ago', [HOUR_MS + 1000, 'Denied', ''], true],
    ['that failed more than an hour ago', [HOUR_MS + 1000, 'Failed', ''], true],
    ['that is pending for a day', [24 * HOUR_MS, '', ''], false],
    ['that is pending for more than a day', [24 * HOUR_MS + 1000, '', ''], true],
  ]
  for (const [what, one, expected] of cases) {
    it(`${expected ? 'deletes' : 'keeps'} a request ${what}`, () =>
      assert.equal(isOver(request(...one), NOW_MS), expected))
  }
})
